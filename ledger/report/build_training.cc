#include "ledger/report/build_training.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "ledger/format/names.h"
#include "ledger/replay/communicator_name.h"
#include "ledger/replay/record_fields.h"

namespace ledger::report {
namespace {

using attribution::Attribution;
using attribution::Category;
using attribution::DeviceLives;
using attribution::Grounds;
using attribution::kNever;
using attribution::Life;
using attribution::StateTensor;

constexpr std::size_t kMaxHolders = 20;

std::vector<PhaseReport> BuildPhases(const Attribution& attribution, std::int8_t device, std::int64_t end_ns) {
  const format::LedgerFile& file = attribution.grounds().file;
  std::vector<PhaseReport> phases;
  const attribution::CategoryTimeline* const timeline = attribution.timeline(device);
  if (timeline == nullptr) return phases;
  for (const attribution::PhaseUse& use : timeline->phases) {
    const attribution::PhaseInterval& interval = attribution.phases().intervals()[use.interval];
    PhaseReport& phase = phases.emplace_back();
    phase.name = std::string(format::PhaseName(interval.kind));
    phase.step = interval.step;
    phase.in_step = attribution::InStep(interval.kind);
    phase.start_ns = use.interval == 0 ? 0 : file.TimeAt(interval.from);
    phase.end_ns = file.TimeAt(attribution.phases().End(use.interval), end_ns);
    phase.peak_time_ns = use.peak_slot == 0 ? 0 : file.TimeAt(use.peak_slot);
    phase.begin_bytes = use.begin_bytes;
    phase.peak_bytes = use.peak_bytes;
    phase.end_bytes = use.end_bytes;
    phase.at_peak = use.at_peak;
    phase.at_end = use.at_end;
  }
  return phases;
}

TransientReport BuildTransient(const Grounds& grounds, const attribution::TransientUse& use) {
  if (use.slot == kNever) return {};
  return {use, grounds.file.TimeAt(use.slot), grounds.phases.Name(grounds.phases.IndexAt(use.slot))};
}

GatheredReport BuildGathered(const Grounds& grounds, const DeviceLives& lives) {
  attribution::GatheredState state = attribution::GatheredOf(grounds, lives);
  GatheredReport report;
  report.largest = BuildTransient(grounds, state.largest);
  report.most_ahead = BuildTransient(grounds, state.most_ahead);
  report.transient = BuildTransient(grounds, state.transient);
  report.largest_reduce_scatter = state.largest_reduce_scatter;
  report.groups = std::move(state.groups);
  for (const attribution::HeldGathered& held : state.held) {
    report.held.push_back({held.name, held.bytes, held.blocks, held.steps, held.forwards,
                           grounds.file.TimeAt(held.since), grounds.file.TimeAt(held.until, -1)});
  }
  return report;
}

ModelStateReport BuildModelState(const Attribution& attribution, const DeviceLives& lives, std::int8_t device,
                                 std::uint64_t peak) {
  const Grounds grounds = attribution.grounds();
  attribution::ModelState state = attribution::ModelStateOf(grounds, lives);
  ModelStateReport report;
  report.tensors = std::move(state.tensors);
  report.time_ns = grounds.file.TimeAt(state.slot);
  report.held = state.held;
  report.unsharded_gradients = state.unsharded_gradients;
  report.master_gradients = state.master_gradients;
  for (const std::uint64_t index : attribution.AliveAt(device, peak)) {
    const Life& life = lives.lives[index];
    (attribution::IsPersistent(grounds, life) ? report.persistent_at_peak : report.transient_at_peak) += life.bytes;
  }
  return report;
}

std::vector<CommunicatorReport> BuildCommunicators(const format::LedgerFile& file) {
  std::vector<CommunicatorReport> communicators;
  for (std::size_t i = 0; i < file.communicators().size(); ++i) {
    const format::CommunicatorTable::Communicator& each = file.communicators()[i];
    const auto& info = file.slots()[each.info].As<record::CommunicatorInfo>();
    CommunicatorReport& report = communicators.emplace_back();
    report.name = replay::CommunicatorName(file, i);
    report.nccl_name = file.Text(info.name);
    report.ranks = info.nranks;
    report.rank = info.rank;
    if (each.group == format::CommunicatorTable::kNone) continue;
    const auto& group = file.slots()[each.group].As<record::ProcessGroupInfo>();
    report.group = {file.Text(group.name), file.Text(group.description), group.ranks, group.rank, group.first_rank,
                    group.rank_stride};
  }
  return communicators;
}

}  // namespace

void BuildTraining(const Attribution& attribution, const replay::DeviceAnalysis& device, RankReport& rank) {
  const DeviceLives* const lives = attribution.lives(device.device);
  rank.phases_inferred = attribution.phases().inferred();
  rank.communicators = BuildCommunicators(attribution.grounds().file);
  if (lives == nullptr) return;
  const Grounds grounds = attribution.grounds();
  rank.phases = BuildPhases(attribution, device.device, rank.duration_ns);
  rank.communication = attribution::CommunicationOf(grounds, *lives);
  rank.gathered = BuildGathered(grounds, *lives);
  rank.model_state = BuildModelState(attribution, *lives, device.device, device.allocated.peak.slot);
  rank.growth = attribution::GrowthOf(grounds, *lives);
}

void BuildHolders(const Attribution& attribution, std::uint64_t slot, OomReport& oom) {
  const auto device = static_cast<std::int8_t>(oom.device);
  const DeviceLives* const lives = attribution.lives(device);
  if (lives == nullptr) return;
  const Grounds grounds = attribution.grounds();
  std::map<std::tuple<Category, std::string, std::string>, HolderReport> by_place;
  for (const std::uint64_t index : attribution.AliveAt(device, slot)) {
    const Life& life = lives->lives[index];
    const format::Slot& record = grounds.file.slots()[life.begin];
    const std::string scope = grounds.file.ScopePath(replay::ScopeOf(record));
    const std::string owner = grounds.file.Text(replay::OwnerOf(record));
    HolderReport& holder = by_place[{life.category, scope, owner}];
    if (holder.count == 0) holder = {life.category, scope, owner, 0, 0, 0, 0};
    holder.bytes += life.bytes;
    ++holder.count;
    if (life.end == kNever) holder.held_at_end += life.bytes;
    holder.until_ns = std::max(holder.until_ns, grounds.file.TimeAt(life.end));
  }
  for (auto& [place, holder] : by_place) {
    if (holder.held_at_end != 0) holder.until_ns = -1;
    oom.held_at_end += holder.held_at_end;
    oom.holders.push_back(std::move(holder));
  }
  std::stable_sort(oom.holders.begin(), oom.holders.end(),
                   [](const HolderReport& a, const HolderReport& b) { return a.bytes > b.bytes; });
  oom.holder_count = oom.holders.size();
  if (oom.holders.size() > kMaxHolders) oom.holders.resize(kMaxHolders);
}

void ShiftTraining(RankReport& rank, std::int64_t by) {
  for (PhaseReport& phase : rank.phases) {
    phase.start_ns += by;
    phase.end_ns += by;
    phase.peak_time_ns += by;
  }
  for (TransientReport* each : {&rank.gathered.largest, &rank.gathered.most_ahead, &rank.gathered.transient}) {
    if (each->use.slot != kNever) each->time_ns += by;
  }
  for (HeldReport& held : rank.gathered.held) {
    held.since_ns += by;
    if (held.until_ns >= 0) held.until_ns += by;
  }
  rank.model_state.time_ns += by;
  rank.host_sheet.sheet.time_ns += by;
  for (OomReport& oom : rank.ooms) {
    for (HolderReport& holder : oom.holders) {
      if (holder.until_ns >= 0) holder.until_ns += by;
    }
  }
}

std::uint64_t ModelStateReport::Held() const {
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : held) sum += bytes;
  return sum;
}

std::uint64_t ModelSummary::Bytes(Category category) const {
  std::uint64_t sum = 0;
  for (const StateWidth& width : widths) sum += width.category == category ? width.bytes : 0;
  return sum;
}

ModelSummary SummarizeModel(const std::vector<RankReport>& ranks) {
  std::map<std::tuple<Category, std::string, std::string>, const StateTensor*> tensors;
  ModelSummary summary;
  for (const RankReport& rank : ranks) {
    summary.held += rank.model_state.Held();
    for (const StateTensor& tensor : rank.model_state.tensors) {
      const StateTensor*& known = tensors[{tensor.category, tensor.key, tensor.name}];
      if (known == nullptr || tensor.elements > known->elements) known = &tensor;
    }
  }
  for (const auto& [key, tensor] : tensors) {  // by category and key
    if (tensor->category == Category::kParameter) summary.parameters += tensor->elements;
    if (summary.widths.empty() || summary.widths.back().category != tensor->category ||
        summary.widths.back().key != tensor->key) {
      summary.widths.push_back({tensor->category, tensor->key, 0});
    }
    summary.widths.back().bytes += tensor->Bytes();
    summary.bytes += tensor->Bytes();
  }
  std::stable_sort(summary.widths.begin(), summary.widths.end(), [](const StateWidth& a, const StateWidth& b) {
    return std::tuple(a.category, b.bytes) < std::tuple(b.category, a.bytes);
  });
  return summary;
}

}  // namespace ledger::report
