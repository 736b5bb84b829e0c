#include "ledger/report/text.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "ledger/report/compare_ranks.h"
#include "ledger/report/sheet.h"
#include "ledger/report/text_training.h"
#include "ledger/report/text_trouble.h"
#include "ledger/report/units.h"

namespace ledger::report {
namespace {

constexpr std::size_t kNameWidth = 48;
constexpr std::size_t kSiteWidth = 72;
constexpr std::size_t kMaxSheetColumns = 8;
constexpr std::size_t kMaxPlaces = 5;

void Field(std::string& out, absl::string_view name, absl::string_view text) {
  absl::StrAppend(&out, "  ", PadRight(name, 11), text, "\n");
}

std::string RankList(const std::vector<int>& ranks, std::size_t all) {
  if (ranks.size() == all && all > 1) return "all ranks";
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ", absl::StrJoin(ranks, ", "));
}

// --- Head ---

// Without those that only say where this very report comes from.
std::string Settings(const RankReport& rank, absl::string_view prefix, absl::string_view between) {
  std::vector<std::string> shown;
  for (const auto& [key, value] : rank.settings) {
    absl::string_view name = key;
    if (!absl::ConsumePrefix(&name, prefix) || name == "LEDGER_DIR" || name == "SIMGPU_NODE") continue;
    shown.push_back(absl::StrCat(Printable(name), between, Printable(value)));
  }
  return absl::StrJoin(shown, between == "=" ? "  " : ", ");
}

std::string Devices(const RunReport& run) {
  std::map<std::string, std::uint64_t> kinds;
  for (const RankReport& rank : run.ranks) {
    for (const DeviceReport& device : rank.devices) {
      const std::string name = device.name.empty() ? "device of unknown kind" : Printable(device.name);
      const std::string size = device.total_bytes == 0 ? "" : absl::StrCat(" of ", Gib(device.total_bytes), " GiB");
      ++kinds[absl::StrCat(name, size, device.simulated ? ", SIMULATED" : "")];
    }
  }
  std::vector<std::string> shown;
  for (const auto& [kind, count] : kinds) shown.push_back(absl::StrCat(count, " x ", kind));
  return shown.empty() ? "none was used" : absl::StrJoin(shown, "; ");
}

void ValueReadWarning(std::string& out, const RunReport& run) {
  std::map<std::string, std::uint64_t> places;
  std::uint64_t count = 0;
  for (const RankReport& rank : run.ranks) {
    count += rank.value_reads.count;
    for (const auto& [place, times] : rank.value_reads.places) places[place] += times;
  }
  if (count == 0) return;
  std::vector<std::pair<std::string, std::uint64_t>> sorted(places.begin(), places.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Field(out, "WARNING",
        absl::StrCat("values were read back from simulated devices ", Grouped(count), count == 1 ? " time" : " times",
                     ". No kernel computed them: what the program"));
  Field(out, "", "decided by them may be wrong (docs/limits.md). Read at:");
  for (std::size_t i = 0; i < std::min(sorted.size(), kMaxPlaces); ++i) {
    Field(out, "",
          absl::StrCat("  ", sorted[i].first.empty() ? "(place not known)" : Printable(sorted[i].first), "  x",
                       Grouped(sorted[i].second)));
  }
  if (sorted.size() > kMaxPlaces)
    Field(out, "", absl::StrCat("  and ", Count(sorted.size() - kMaxPlaces, "more place")));
}

void Exactness(std::string& out, const RunReport& run) {
  if (run.exact()) {
    Field(out, "losses", "none: every figure below is exact");
  } else {
    std::map<std::string, std::pair<LossReport, std::vector<int>>> losses;
    for (const RankReport& rank : run.ranks) {
      for (const LossReport& loss : rank.losses) {
        auto& [sum, ranks] = losses[loss.reason];
        const std::uint64_t before = sum.count;
        sum = loss;
        sum.count += before;
        ranks.push_back(rank.rank);
      }
    }
    absl::string_view name = "LOSSES";
    for (const auto& [reason, loss] : losses) {
      Field(out, name,
            absl::StrCat(reason, ": ", Grouped(loss.first.count), " on ", RankList(loss.second, run.ranks.size()), " (",
                         loss.first.meaning, ")"));
      name = "";
    }
    Field(out, "", "The figures below are those of what is there");
  }
  std::vector<int> killed;
  for (const RankReport& rank : run.ranks) {
    if (!rank.clean_end) killed.push_back(rank.rank);
  }
  if (killed.empty()) return;
  Field(out, "ended",
        absl::StrCat(RankList(killed, run.ranks.size()),
                     " without a clean end: still running, or killed. All is there up to that instant"));
}

// All of them are listed further down.
void RanOut(std::string& out, const RunReport& run) {
  std::vector<int> ranks;
  std::uint64_t times = 0;
  const OomReport* first = nullptr;
  for (const RankReport& rank : run.ranks) {
    if (rank.ooms.empty()) continue;
    ranks.push_back(rank.rank);
    times += rank.oom_count;
    if (first == nullptr || rank.ooms.front().time_ns < first->time_ns) first = &rank.ooms.front();
  }
  if (first == nullptr) return;
  Field(out, "RAN OUT",
        absl::StrCat("of memory ", Count(times, "time"), " on ", RankList(ranks, run.ranks.size()), ", first at ",
                     Seconds(first->time_ns), " s: ", Gib(first->requested), " GiB requested, ", Gib(first->allocated),
                     " allocated (see \"Out of memory\" below)"));
}

// What was said of memory that is in no figure below.
void Unplaced(std::string& out, const RunReport& run) {
  attribution::Unplaced sum;
  std::vector<int> ranks;
  for (const RankReport& rank : run.ranks) {
    const attribution::Unplaced& unplaced = rank.unplaced;
    if (unplaced.Sum() == 0) continue;
    ranks.push_back(rank.rank);
    sum.names += unplaced.names;
    sum.tags += unplaced.tags;
    sum.saved_tensors += unplaced.saved_tensors;
    sum.buffers += unplaced.buffers;
    sum.sizes += unplaced.sizes;
  }
  if (ranks.empty()) return;
  std::vector<std::string> kinds;
  const auto add = [&kinds](std::uint64_t count, absl::string_view noun) {
    if (count != 0) kinds.push_back(Count(count, noun));
  };
  add(sum.names, "name");
  add(sum.tags, "tag");
  add(sum.saved_tensors, "saved tensor");
  add(sum.buffers, "buffer");
  add(sum.sizes, "requested size");
  Field(out, "unplaced",
        absl::StrCat(absl::StrJoin(kinds, ", "), " on ", RankList(ranks, run.ranks.size()),
                     " at addresses where no block was alive: freed before it was said,"));
  Field(out, "", "or not from PyTorch's allocator. No figure contains them; where losses are listed, they may be the");
  Field(out, "",
        "cause. The first of a rank: \"unplaced\" in --json names its record, `gpuledger dump --from` shows it");
}

void Head(std::string& out, const RunReport& run) {
  const RankReport& first = run.ranks.front();
  std::set<std::string> hosts;
  std::uint64_t events = 0;
  std::int64_t duration = 0;
  for (const RankReport& rank : run.ranks) {
    hosts.insert(Printable(rank.host));
    events += rank.events;
    duration = std::max(duration, rank.duration_ns + rank.open_realtime_ns - run.start_realtime_ns);
  }
  Line(out, absl::StrCat("GPU memory ledger of ", Count(run.ranks.size(), "rank"), " on ", absl::StrJoin(hosts, ", "),
                         first.run_id.empty() ? "" : absl::StrCat(", run ", Printable(first.run_id))));
  Field(out, "program", Printable(first.program));
  Field(out, "devices", Devices(run));
  if (const std::string versions = Settings(first, "version.", " "); !versions.empty())
    Field(out, "versions", versions);
  if (const std::string variables = Settings(first, "env.", "="); !variables.empty()) Field(out, "settings", variables);
  if (const std::string layers = Settings(first, "layer.", " "); !layers.empty()) Field(out, "layers", layers);
  Field(out, "recorded", absl::StrCat(Grouped(events), " events in ", Seconds(duration), " s"));
  ValueReadWarning(out, run);
  Exactness(out, run);
  RanOut(out, run);
  Unplaced(out, run);
  for (const std::string& note : run.notes) Field(out, "note", note);
  std::set<std::string> notes;
  for (const RankReport& rank : run.ranks) {
    for (const DeviceReport& device : rank.devices) {
      const bool idle = device.peaks.allocated.bytes == 0 && rank.main_device()->peaks.allocated.bytes != 0;
      if (!device.note.empty() && !idle) notes.insert(device.note);
    }
  }
  for (const std::string& note : notes) Field(out, "note", note);
}

// --- Peaks ---

// The path of ranges, or, outside of any, the phase as attribution has it.
std::string PlaceOf(const DeviceReport& device) {
  const std::string& path = device.peaks.allocated.phase;
  return path.empty() && device.at_peak.known ? device.at_peak.phase : PrintablePath(path);
}

std::string PeakCells(const PeakReport& peak) {
  return absl::StrCat(PadLeft(Gib(peak.bytes), kColumnWidth), PadLeft(Seconds(peak.time_ns), kColumnWidth));
}

void PeakTable(std::string& out, const RunReport& run) {
  Line(out, "");
  Line(out, "Peaks: GiB, and when (s since the run began)");
  Line(out,
       absl::StrCat("  rank device", PadLeft("allocated", kColumnWidth), PadLeft("at", kColumnWidth),
                    PadLeft("reserved", kColumnWidth), PadLeft("at", kColumnWidth), PadLeft("device", kColumnWidth),
                    PadLeft("at", kColumnWidth), "  where the allocated peak was"));
  for (const RankReport& rank : run.ranks) {
    for (const DeviceReport& device : rank.devices) {
      Line(out, absl::StrCat(PadLeft(absl::StrCat(rank.rank), 6), PadLeft(absl::StrCat(device.device), 7),
                             PeakCells(device.peaks.allocated), PeakCells(device.peaks.reserved),
                             PeakCells(device.peaks.device), "  ", CutFront(PlaceOf(device), kSiteWidth)));
    }
  }
}

void Comparison(std::string& out, absl::string_view what, const RankComparison& comparison) {
  if (comparison.highest < 0) return;
  if (comparison.differences.empty()) {
    Line(out, absl::StrCat("  ", what, ": the same on all ranks"));
    return;
  }
  Line(out, absl::StrCat("  ", what, ": rank ", comparison.highest, " is highest, ",
                         SignedGib(static_cast<std::int64_t>(comparison.highest_bytes - comparison.lowest_bytes)),
                         " above rank ", comparison.lowest, ", the lowest; it differs in"));
  for (const Difference& difference : comparison.differences) {
    Line(out, absl::StrCat("    ", PadLeft(SignedGib(difference.bytes), kColumnWidth), "  ",
                           CutFront(Printable(difference.what), kSiteWidth)));
  }
}

// --- Balance sheet ---

struct SheetColumn {
  int rank = 0;
  const InstantReport* instant = nullptr;
};

// A column for each device; a second line says which where a rank has several.
void SheetHead(std::string& out, const std::vector<SheetColumn>& columns, std::size_t shown, absl::string_view name) {
  std::string ranks(kNameWidth, ' '), devices(kNameWidth, ' ');
  bool several = false;
  for (std::size_t i = 0; i < shown; ++i) {
    absl::StrAppend(&ranks, PadLeft(absl::StrCat("rank ", columns[i].rank), kColumnWidth));
    absl::StrAppend(&devices, PadLeft(absl::StrCat("device ", columns[i].instant->device), kColumnWidth));
    several = several || (i != 0 && columns[i].rank == columns[i - 1].rank);
  }
  Line(out, "");
  Line(out, absl::StrCat("Balance sheet of each ", several ? "device" : "rank's device", " at ", name, " (GiB)"));
  Line(out, columns.size() > 1 ? absl::StrCat(ranks, PadLeft("all", kColumnWidth)) : ranks);
  if (several) Line(out, devices);
}

void Sheet(std::string& out, const RunReport& run) {
  std::vector<SheetColumn> columns;
  std::vector<const InstantReport*> instants;
  std::set<std::string> notes;
  std::string name;
  for (const RankReport& rank : run.ranks) {
    for (const DeviceReport& device : rank.devices) {
      const InstantReport& instant = Shown(rank, device);
      if (!instant.known) continue;
      columns.push_back({rank.rank, &instant});
      instants.push_back(&instant);
      name = InstantName(rank);
      if (!instant.balance.used_note.empty()) notes.insert(instant.balance.used_note);
    }
  }
  if (columns.empty()) return;
  const std::size_t shown = std::min(columns.size(), kMaxSheetColumns);
  SheetHead(out, columns, shown, name);
  for (const SheetRow& row : MakeSheet(instants)) {
    const std::string account =
        absl::StrCat(std::string(2 + 2 * static_cast<std::size_t>(row.depth), ' '), Printable(row.name));
    std::string line = PadRight(CutFront(account, kNameWidth), kNameWidth);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < row.bytes.size(); ++i) {
      sum += row.bytes[i];
      if (i < shown) absl::StrAppend(&line, PadLeft(Gib(row.bytes[i]), kColumnWidth));
    }
    if (columns.size() > 1) absl::StrAppend(&line, PadLeft(Gib(sum), kColumnWidth));
    Line(out, line);
  }
  if (columns.size() > shown) {
    Line(out, absl::StrCat("  (", Count(columns.size() - shown, "more device"), " in \"all\", and each in --json)"));
  }
  for (const std::string& note : notes) Line(out, absl::StrCat("  device used: ", note));
}

// --- In detail ---

const RankReport* DetailedRank(const RunReport& run, const TextOptions& options) {
  const RankReport* detailed = nullptr;
  for (const RankReport& rank : run.ranks) {
    const DeviceReport* const main = rank.main_device();
    if (main == nullptr || !Shown(rank, *main).known) continue;
    if (rank.rank != options.rank.value_or(rank.rank) || main->device != options.device.value_or(main->device))
      continue;
    const bool higher =
        detailed == nullptr || main->peaks.allocated.bytes > detailed->main_device()->peaks.allocated.bytes;
    if (higher) detailed = &rank;
  }
  return detailed;
}

// What happened on several ranks alike is one line.
void UnexplainedGrowth(std::string& out, const RunReport& run) {
  struct Growth {
    std::vector<int> ranks;
    std::int64_t first_ns = 0;
  };
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::string>, Growth> growths;
  for (const RankReport& rank : run.ranks) {
    for (const DeviceReport& device : rank.devices) {
      for (const UnexplainedReport& step : device.unexplained_steps) {
        Growth& growth = growths[{step.bytes, step.grew_by, Printable(step.what)}];
        if (growth.ranks.empty() || step.time_ns < growth.first_ns) growth.first_ns = step.time_ns;
        if (growth.ranks.empty() || growth.ranks.back() != rank.rank) growth.ranks.push_back(rank.rank);
      }
    }
  }
  if (growths.empty()) return;
  Line(out, "");
  Line(out, "When the unexplained grew (GiB)");
  for (const auto& [step, growth] : growths) {
    const auto& [bytes, grew_by, what] = step;
    Line(out, absl::StrCat(PadLeft(Seconds(growth.first_ns), kColumnWidth), " s  ",
                           SignedGib(static_cast<std::int64_t>(grew_by)), " to ", Gib(bytes), ", seen after ", what,
                           " on ", RankList(growth.ranks, run.ranks.size())));
  }
}

}  // namespace

std::string IdentitiesText(const RunReport& run, bool every_rank) {
  std::vector<std::string> names;
  for (const RankReport& rank : run.ranks) {
    for (const auto& identity : rank.identities) {
      if (std::find(names.begin(), names.end(), identity.name) == names.end()) names.push_back(identity.name);
    }
  }
  std::string out;
  for (const std::string& name : names) {
    std::size_t checked = 0, held = 0;
    std::string details;
    for (const RankReport& rank : run.ranks) {
      for (const auto& identity : rank.identities) {
        if (identity.name != name) continue;
        ++checked;
        held += identity.holds ? 1 : 0;
        if (!every_rank && identity.holds) continue;
        absl::StrAppend(&details, "    rank ", rank.rank, identity.holds ? "  " : "  FAILS  ",
                        Printable(identity.detail), "\n");
      }
    }
    absl::StrAppend(&out, "  ", held == checked ? "holds  " : "FAILS  ", PadRight(name, 20), "on ", held, " of ",
                    Count(checked, "rank"), "\n", details);
  }
  return out;
}

std::string ToText(const RunReport& run, const TextOptions& options) {
  if (run.ranks.empty()) return "No ranks.\n";
  std::string out;
  Head(out, run);
  PeakTable(out, run);
  if (run.ranks.size() > 1) {
    Comparison(out, "allocated", CompareAllocated(run));
    Comparison(out, "device", CompareDevice(run));
  }
  if (const RankReport* rank = DetailedRank(run, options)) {
    absl::StrAppend(&out, HoldersText(*rank, options.holders), OtherDevicesText(*rank), PhasesText(*rank),
                    StepsText(*rank), ModelStateText(run, *rank), GatheredText(*rank), CommunicationText(*rank));
  }
  Sheet(out, run);
  UnexplainedGrowth(out, run);
  absl::StrAppend(&out, HostText(run), OutOfMemoryText(run), FailedAllocationsText(run));
  const std::string identities = IdentitiesText(run, /*every_rank=*/false);
  if (identities.empty()) return out;
  Line(out, "");
  Line(out, "Identities");
  absl::StrAppend(&out, identities);
  return out;
}

}  // namespace ledger::report
