#include "ledger/report/text_holders.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ledger/report/units.h"

namespace ledger::report {
namespace {

using attribution::Category;
using attribution::CategoryBytes;
using attribution::Evidence;

constexpr std::size_t kNameWidth = 30;
constexpr std::size_t kShareWidth = 7;
constexpr std::size_t kMemberWidth = 84;
constexpr std::size_t kMembers = 3;
// Steps are alike after the first ones.
constexpr std::size_t kFirstSteps = 3;

// "named 98.1%, scope 1.9%", strongest first.
std::string EvidenceOf(const CategoryReport& category) {
  std::vector<std::string> parts;
  for (std::size_t i = attribution::kEvidenceCount; i-- > 0;) {
    if (category.evidence[i] == 0) continue;
    const absl::string_view name = attribution::EvidenceName(static_cast<Evidence>(i));
    const bool all = category.evidence[i] == category.bytes;
    parts.push_back(all ? std::string(name) : absl::StrCat(name, " ", Percent(category.evidence[i], category.bytes)));
  }
  return absl::StrJoin(parts, ", ");
}

std::string Cells(std::uint64_t bytes, std::uint64_t total, std::uint64_t blocks) {
  return absl::StrCat(PadLeft(Gib(bytes), kColumnWidth), PadLeft(Percent(bytes, total), kShareWidth),
                      PadLeft(Grouped(blocks), kColumnWidth));
}

// "blocks.*.attention.qkv" for "blocks.3.attention.qkv": layers of a stack are members of one kind.
std::string Kind(const std::string& name) {
  std::string kind;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins = i == 0 || name[i - 1] == '.';
    std::size_t end = i;
    while (begins && end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
    const bool number = end > i && (end == name.size() || name[end] == '.' || name[end] == ':' || name[end] == ' ');
    kind += number ? '*' : name[i];
    if (number) i = end - 1;
  }
  return kind;
}

// Largest first.
std::vector<MemberReport> ByKind(const std::vector<MemberReport>& members) {
  std::map<std::string, MemberReport> kinds;
  for (const MemberReport& each : members) {
    const std::string kind = Kind(each.name);
    MemberReport& member = kinds[kind];
    member.name = kind;
    member.bytes += each.bytes;
    member.blocks += each.blocks;
  }
  std::vector<MemberReport> sorted;
  for (auto& [kind, member] : kinds) sorted.push_back(std::move(member));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return sorted;
}

void Members(std::string& out, const CategoryReport& category, std::size_t limit) {
  const auto members = ByKind(category.members);
  const std::size_t shown = std::min(limit, members.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const MemberReport& member = members[i];
    Line(out, absl::StrCat(PadLeft(Gib(member.bytes), kNameWidth + kColumnWidth), PadLeft("", kShareWidth),
                           PadLeft(Grouped(member.blocks), kColumnWidth), "    ",
                           CutFront(Printable(member.name), kMemberWidth)));
  }
  if (shown == members.size()) return;
  std::uint64_t bytes = 0, blocks = 0;
  for (std::size_t i = shown; i < members.size(); ++i) {
    bytes += members[i].bytes;
    blocks += members[i].blocks;
  }
  Line(out, absl::StrCat(PadLeft(Gib(bytes), kNameWidth + kColumnWidth), PadLeft("", kShareWidth),
                         PadLeft(Grouped(blocks), kColumnWidth), "    ", members.size() - shown, " more"));
}

void Categories(std::string& out, const InstantReport& instant, std::size_t limit) {
  Line(out, absl::StrCat(PadRight("  category", kNameWidth), PadLeft("GiB", kColumnWidth), PadLeft("", kShareWidth),
                         PadLeft("blocks", kColumnWidth), PadLeft("at most", kColumnWidth), "  evidence"));
  std::vector<const CategoryReport*> categories;
  for (const CategoryReport& category : instant.categories) {
    if (category.max_bytes != 0) categories.push_back(&category);
  }
  std::stable_sort(categories.begin(), categories.end(), [](auto* a, auto* b) { return a->bytes > b->bytes; });
  for (const CategoryReport* category : categories) {
    Line(out, absl::StrCat(PadRight(absl::StrCat("  ", attribution::CategoryName(category->category)), kNameWidth),
                           Cells(category->bytes, instant.bytes, category->blocks),
                           PadLeft(Gib(category->max_bytes), kColumnWidth), category->bytes == 0 ? "" : "  ",
                           EvidenceOf(*category)));
    Members(out, *category, std::min(limit, kMembers));
  }
}

void CategoryMaxima(std::string& out, const InstantReport& at_peak) {
  if (at_peak.bytes == 0 || at_peak.sum_of_maxima < at_peak.bytes) return;
  const std::uint64_t more = at_peak.sum_of_maxima - at_peak.bytes;
  Line(out, absl::StrCat("  The categories' own maxima add up to ", Gib(at_peak.sum_of_maxima), " GiB",
                         more == 0 ? ": at this peak, each of them is at its maximum."
                                   : absl::StrCat(", ", Gib(more),
                                                  " more than the peak: they are not reached at the same time.")));
}

// Rounding of blocks to the allocator's sizes.
void Rounding(std::string& out, const InstantReport& instant) {
  std::uint64_t requested = 0, rounded = 0;
  for (const CategoryReport& category : instant.categories) {
    requested += category.requested;
    rounded += category.rounded;
  }
  if (rounded == 0) return;
  Line(out, absl::StrCat("  Rounding of blocks: ", Gib(rounded - requested), " GiB (requested ", Gib(requested), ", ",
                         Percent(rounded, instant.bytes), " of the bytes have a known request)"));
}

std::string GroupOf(const BlockReport& block, GroupBy by) {
  switch (by) {
    case GroupBy::kModule:
      return block.module.empty() ? "(no module)" : block.module;
    case GroupBy::kOp:
      return block.op.empty() ? "(no op)" : block.op;
    case GroupBy::kSite:
      return PrintablePath(block.scope);
    case GroupBy::kOwner:
      return block.owner.empty() ? "PyTorch's caching allocator" : block.owner;
    case GroupBy::kCategory:
      break;
  }
  return std::string(attribution::CategoryName(block.category));
}

// "parameter 1.200, gradient 0.400": what a group consists of, without what is too small to show.
std::string Composition(const CategoryBytes& categories) {
  std::vector<std::pair<std::uint64_t, absl::string_view>> parts;
  for (std::size_t i = 0; i < categories.size(); ++i) {
    if (categories[i] != 0) parts.emplace_back(categories[i], attribution::CategoryName(static_cast<Category>(i)));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [bytes, name] : parts) {
    if (!texts.empty() && Gib(bytes) == Gib(0)) break;
    texts.push_back(absl::StrCat(name, " ", Gib(bytes)));
  }
  return absl::StrJoin(texts, ", ");
}

void Groups(std::string& out, const InstantReport& instant, GroupBy by, std::size_t limit) {
  struct Group {
    std::string name;
    std::uint64_t bytes = 0, blocks = 0;
    CategoryBytes categories{};
  };
  std::map<std::string, Group> by_name;
  for (const BlockReport& block : instant.blocks) {
    const std::string name = by == GroupBy::kModule ? Kind(GroupOf(block, by)) : GroupOf(block, by);
    Group& group = by_name[name];
    group.name = name;
    group.bytes += block.bytes;
    ++group.blocks;
    group.categories[attribution::Index(block.category)] += block.bytes;
  }
  std::vector<Group> groups;
  for (auto& [name, group] : by_name) groups.push_back(std::move(group));
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.bytes > b.bytes; });
  Line(out, absl::StrCat(PadLeft("GiB", kColumnWidth), PadLeft("", kShareWidth), PadLeft("blocks", kColumnWidth)));
  Group rest;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i >= limit) {
      rest.bytes += groups[i].bytes;
      rest.blocks += groups[i].blocks;
      continue;
    }
    Line(out, absl::StrCat(Cells(groups[i].bytes, instant.bytes, groups[i].blocks), "  ",
                           CutFront(Printable(groups[i].name), kMemberWidth), ": ", Composition(groups[i].categories)));
  }
  if (groups.size() > limit) {
    Line(out, absl::StrCat(Cells(rest.bytes, instant.bytes, rest.blocks), "  ", groups.size() - limit, " more"));
  }
}

absl::string_view GroupName(GroupBy by) {
  switch (by) {
    case GroupBy::kModule:
      return "module";
    case GroupBy::kOp:
      return "op";
    case GroupBy::kSite:
      return "place of allocation";
    case GroupBy::kOwner:
      return "owner";
    case GroupBy::kCategory:
      break;
  }
  return "category";
}

// The highest of each kind of phase within a step, and what was alive at the end of the last one.
struct StepRow {
  std::uint64_t step = 0;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> phases;  // name → peak, end
  std::uint64_t peak = 0;
};

std::vector<StepRow> StepRows(const RankReport& rank) {
  std::vector<StepRow> rows;
  for (const PhaseReport& phase : rank.phases) {
    if (!phase.in_step && phase.name != "between") continue;
    if (rows.empty() || (rows.back().step != phase.step && phase.in_step)) rows.push_back({phase.step, {}, 0});
    StepRow& row = rows.back();
    auto& [peak, end] = row.phases[phase.name];
    peak = std::max(peak, phase.peak_bytes);
    end = phase.end_bytes;
    row.peak = std::max(row.peak, phase.peak_bytes);
  }
  return rows;
}

}  // namespace

const InstantReport& Shown(const RankReport& rank, const DeviceReport& device) {
  return rank.at_name.empty() ? device.at_peak : device.at;
}

std::string InstantName(const RankReport& rank) {
  return rank.at_name.empty() ? "its allocated peak" : Printable(rank.at_name);
}

std::string HoldersText(const RankReport& rank, const HoldersOptions& options) {
  const InstantReport& instant = Shown(rank, *rank.main_device());
  std::string out = "\n";
  Line(out, absl::StrCat("Who held it: rank ", rank.rank, ", device ", instant.device, ", at ", InstantName(rank), ": ",
                         Gib(instant.bytes), " GiB in ", Count(instant.blocks.size(), "block"), ", ", instant.phase,
                         ", ", Seconds(instant.time_ns), " s; by ", GroupName(options.by)));
  if (options.by == GroupBy::kCategory) {
    Categories(out, instant, options.limit);
    CategoryMaxima(out, rank.at_peak());
  } else {
    Groups(out, instant, options.by, options.limit);
  }
  Rounding(out, instant);
  const bool modules = std::any_of(instant.blocks.begin(), instant.blocks.end(),
                                   [](const BlockReport& block) { return !block.module.empty(); });
  if (options.by != GroupBy::kCategory || !modules) return out;
  Line(out, "");
  Line(out, "The same, by module");
  Groups(out, instant, GroupBy::kModule, options.limit);
  return out;
}

std::string OtherDevicesText(const RankReport& rank) {
  std::string rows;
  for (const DeviceReport& device : rank.devices) {
    const InstantReport& instant = Shown(rank, device);
    if (&device == rank.main_device() || instant.blocks.empty()) continue;
    CategoryBytes bytes{};
    for (const CategoryReport& category : instant.categories)
      bytes[attribution::Index(category.category)] = category.bytes;
    Line(rows,
         absl::StrCat(PadLeft(absl::StrCat(device.device), 8), PadLeft(Gib(instant.bytes), kColumnWidth),
                      PadLeft(Grouped(instant.blocks.size()), kColumnWidth),
                      PadLeft(Seconds(instant.time_ns), kColumnWidth), "  ", instant.phase, ": ", Composition(bytes)));
  }
  if (rows.empty()) return "";
  std::string out = "\n";
  Line(out, absl::StrCat("Other devices of rank ", rank.rank, ", each at ", InstantName(rank),
                         " (--device N describes one in full)"));
  Line(out, absl::StrCat("  device", PadLeft("GiB", kColumnWidth), PadLeft("blocks", kColumnWidth),
                         PadLeft("at, s", kColumnWidth), "  phase, and by category"));
  return out + rows;
}

std::string PhasesText(const RankReport& rank) {
  const std::vector<StepRow> rows = StepRows(rank);
  if (rows.empty()) return "";
  constexpr const char* kPhases[] = {"forward", "backward", "optimizer", "between"};
  std::string out = "\n";
  Line(out, absl::StrCat("Steps of rank ", rank.rank, ": GiB allocated, at most and at the end of each phase",
                         rank.phases_inferred ? " (phases inferred: no agent told them)" : ""));
  std::string head = "  step";
  for (const char* const phase : kPhases) absl::StrAppend(&head, PadLeft(phase, 2 * kColumnWidth - 2));
  Line(out, absl::StrCat(head, PadLeft("step's peak", kColumnWidth + 2)));
  std::size_t highest = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].peak > rows[highest].peak) highest = i;
  }
  bool gap = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i >= kFirstSteps && i != highest && i + 1 != rows.size()) {
      if (!gap) Line(out, "   ...");
      gap = true;
      continue;
    }
    gap = false;
    std::string line = PadLeft(absl::StrCat(rows[i].step), 6);
    for (const char* const phase : kPhases) {
      const auto found = rows[i].phases.find(phase);
      const bool none = found == rows[i].phases.end();
      absl::StrAppend(&line, PadLeft(none ? "" : Gib(found->second.first), kColumnWidth - 1),
                      PadLeft(none ? "" : Gib(found->second.second), kColumnWidth - 1));
    }
    Line(out, absl::StrCat(line, PadLeft(Gib(rows[i].peak), kColumnWidth + 2),
                           i == highest && rows.size() > 1 ? "  the highest" : ""));
  }
  return out;
}

}  // namespace ledger::report
