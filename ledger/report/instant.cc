#include "ledger/report/instant.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ledger/attribution/describe_life.h"
#include "ledger/format/names.h"
#include "ledger/replay/communicator_name.h"
#include "ledger/replay/record_fields.h"

namespace ledger::report {
namespace {

using attribution::Attribution;
using attribution::Category;
using attribution::DeviceLives;
using attribution::Grounds;
using attribution::Life;
using format::LedgerFile;
using replay::Analysis;

// Of the collective that gave a communication buffer its role; "" where there is none, or the framework did not say it.
std::string ProcessGroupOf(const Grounds& grounds, const attribution::Facts& facts, const Life& life) {
  if (life.category != Category::kCommBuffer || facts.call == attribution::kNever || life.role != facts.role) return "";
  const auto& call = grounds.file.slots()[facts.call].As<record::Collective>();
  const auto communicator = grounds.file.FindCommunicator(call.communicator, facts.call);
  return communicator ? replay::ProcessGroupName(grounds.file, *communicator) : "";
}

// "layers.0: aten::empty (all-gather output, mesh_shard)".
std::string MemberName(const BlockReport& block) {
  if (block.role.empty()) return block.member;
  return absl::StrCat(block.member, " (", block.role, block.process_group.empty() ? "" : ", ", block.process_group,
                      ")");
}

BlockReport BuildBlock(const Grounds& grounds, const DeviceLives& lives, const Life& life) {
  const format::Slot& slot = grounds.file.slots()[life.begin];
  BlockReport block;
  if (slot.kind() == record::Kind::kBlockAlloc) {
    block.address = slot.As<record::Block>().address;
    block.requested = slot.As<record::Block>().requested;
    if (block.requested == 0) block.requested = lives.FactsOf(life).requested;
  } else {
    block.address = slot.As<record::Allocation>().address;
    block.requested = life.bytes;
  }
  block.slot = life.begin;
  block.bytes = life.bytes;
  block.category = life.category;
  block.evidence = life.evidence;
  block.role = std::string(attribution::RoleName(life.role));
  block.process_group = ProcessGroupOf(grounds, lives.FactsOf(life), life);
  block.name = attribution::NameOf(grounds, lives, life);
  block.member = attribution::MemberOf(grounds, lives, life);
  block.module = attribution::ModuleOf(grounds, lives, life);
  block.op = attribution::OpOf(grounds, life);
  block.scope = grounds.file.ScopePath(replay::ScopeOf(slot));
  block.owner = grounds.file.Text(replay::OwnerOf(slot));
  block.phase = grounds.phases.Name(life.begin_phase);
  block.born_ns = grounds.file.TimeAt(life.begin);
  block.freed_ns = grounds.file.TimeAt(life.end, -1);
  return block;
}

void CountCategories(const attribution::CategoryTimeline& timeline, const LedgerFile& file, InstantReport& instant) {
  instant.categories.resize(attribution::kCategoryCount);
  for (std::size_t i = 0; i < attribution::kCategoryCount; ++i) {
    CategoryReport& category = instant.categories[i];
    category.category = static_cast<Category>(i);
    category.max_bytes = timeline.maxima[i].bytes;
    if (category.max_bytes != 0) category.max_time_ns = file.TimeAt(timeline.maxima[i].slot);
  }
  for (const BlockReport& block : instant.blocks) {
    CategoryReport& category = instant.categories[attribution::Index(block.category)];
    category.bytes += block.bytes;
    ++category.blocks;
    category.evidence[attribution::Index(block.evidence)] += block.bytes;
    instant.bytes += block.bytes;
    if (block.requested == 0 || block.requested > block.bytes) continue;
    category.requested += block.requested;
    category.rounded += block.bytes;
  }
  instant.sum_of_maxima = timeline.sum_of_maxima;
}

void CollectMembers(InstantReport& instant) {
  std::vector<std::map<std::string, MemberReport>> members(attribution::kCategoryCount);
  for (const BlockReport& block : instant.blocks) {
    const std::string name = MemberName(block);
    MemberReport& member = members[attribution::Index(block.category)][name];
    member.name = name;
    member.bytes += block.bytes;
    ++member.blocks;
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    for (auto& [name, member] : members[i]) instant.categories[i].members.push_back(std::move(member));
    std::stable_sort(instant.categories[i].members.begin(), instant.categories[i].members.end(),
                     [](const MemberReport& a, const MemberReport& b) { return a.bytes > b.bytes; });
  }
}

void CollectModules(InstantReport& instant) {
  std::map<std::string, ModuleReport> modules;
  for (const BlockReport& block : instant.blocks) {
    ModuleReport& module = modules[block.module];
    module.name = block.module;
    module.bytes += block.bytes;
    module.categories[attribution::Index(block.category)] += block.bytes;
  }
  for (auto& [name, module] : modules) instant.modules.push_back(std::move(module));
  std::stable_sort(instant.modules.begin(), instant.modules.end(),
                   [](const ModuleReport& a, const ModuleReport& b) { return a.bytes > b.bytes; });
}

// The interval of the wanted kind and step that has the highest peak.
std::optional<std::uint64_t> HighestPhase(const Attribution& attribution, std::int8_t device,
                                          const InstantChoice& choice) {
  const attribution::CategoryTimeline* const timeline = attribution.timeline(device);
  if (timeline == nullptr) return std::nullopt;
  const attribution::PhaseUse* highest = nullptr;
  for (const attribution::PhaseUse& use : timeline->phases) {
    const attribution::PhaseInterval& interval = attribution.phases().intervals()[use.interval];
    const bool wanted =
        choice.kind == InstantChoice::Kind::kStep
            ? attribution::InStep(interval.kind) && interval.step == choice.step
            : choice.name == format::PhaseName(interval.kind) || choice.name == attribution.phases().Name(use.interval);
    if (wanted && (highest == nullptr || use.peak_bytes > highest->peak_bytes)) highest = &use;
  }
  if (highest == nullptr) return std::nullopt;
  return highest->peak_slot;
}

std::optional<std::uint64_t> SlotAtTime(const LedgerFile& file, std::int64_t time_ns) {
  std::optional<std::uint64_t> found;
  const auto slots = file.slots();
  for (std::uint64_t slot = 0; slot < slots.size(); ++slot) {
    if (!slots[slot].committed() || slots[slot].kind() == record::Kind::kText) continue;
    // Threads may record a little out of order: the last record that is old enough.
    if (file.TimeAt(slot) <= time_ns) found = slot;
  }
  return found;
}

}  // namespace

absl::StatusOr<InstantChoice> ParseInstant(absl::string_view text) {
  InstantChoice choice;
  choice.text = std::string(text);
  absl::string_view rest = text;
  if (text == "peak" || text == "allocated") return choice;
  if (text == "reserved" || text == "device") {
    choice.kind = text == "device" ? InstantChoice::Kind::kDevicePeak : InstantChoice::Kind::kReservedPeak;
    return choice;
  }
  if (absl::ConsumePrefix(&rest, "step:")) {
    choice.kind = InstantChoice::Kind::kStep;
    if (absl::SimpleAtoi(rest, &choice.step)) return choice;
  } else if (absl::ConsumePrefix(&rest, "phase:") || absl::ConsumePrefix(&rest, "mark:")) {
    choice.kind = absl::StartsWith(text, "phase:") ? InstantChoice::Kind::kPhase : InstantChoice::Kind::kMark;
    choice.name = std::string(rest);
    if (!choice.name.empty()) return choice;
  } else {
    double seconds = 0;
    absl::ConsumeSuffix(&rest, "s");
    choice.kind = InstantChoice::Kind::kTime;
    if (absl::SimpleAtod(rest, &seconds) && seconds >= 0 && seconds < 1e9) {
      choice.time_ns = static_cast<std::int64_t>(seconds * 1e9);
      return choice;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text,
                                                 "' is no instant; expected peak, reserved, device, step:N, "
                                                 "phase:NAME (forward, backward, \"step 3 backward\", ...), mark:NAME, "
                                                 "or seconds since the start"));
}

std::optional<std::uint64_t> FindInstant(const Analysis& analysis, const Attribution& attribution, std::int8_t device,
                                         const InstantChoice& choice) {
  const auto& devices = analysis.devices();
  const auto found = std::find_if(devices.begin(), devices.end(), [&](const auto& d) { return d.device == device; });
  if (found == devices.end()) return std::nullopt;
  switch (choice.kind) {
    case InstantChoice::Kind::kAllocatedPeak:
      return found->allocated.peak.slot;
    case InstantChoice::Kind::kReservedPeak:
      return found->reserved.peak.slot;
    case InstantChoice::Kind::kDevicePeak:
      return found->used.peak.slot;
    case InstantChoice::Kind::kStep:
    case InstantChoice::Kind::kPhase:
      return HighestPhase(attribution, device, choice);
    case InstantChoice::Kind::kMark:
      return replay::FindMark(analysis.file(), choice.name);
    case InstantChoice::Kind::kTime:
      return SlotAtTime(analysis.file(), choice.time_ns);
  }
  return std::nullopt;
}

InstantReport BuildInstant(const Analysis& analysis, const Attribution& attribution,
                           const replay::DeviceAnalysis& device, std::uint64_t slot) {
  InstantReport instant;
  const LedgerFile& file = analysis.file();
  const DeviceLives* const lives = attribution.lives(device.device);
  instant.known = true;
  instant.device = device.device;
  instant.time_ns = file.TimeAt(slot);
  const std::size_t interval = attribution.phases().IndexAt(slot);
  instant.phase = attribution.phases().Name(interval);
  instant.step = attribution.phases().intervals()[interval].step;
  instant.balance = analysis.BalanceAt(slot, device);
  if (lives == nullptr) {
    CountCategories({}, file, instant);
    return instant;
  }
  for (const std::uint64_t life : attribution.AliveAt(device.device, slot)) {
    instant.blocks.push_back(BuildBlock(attribution.grounds(), *lives, lives->lives[life]));
  }
  CountCategories(*attribution.timeline(device.device), file, instant);
  CollectMembers(instant);
  CollectModules(instant);
  return instant;
}

}  // namespace ledger::report
