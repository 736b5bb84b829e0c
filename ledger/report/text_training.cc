#include "ledger/report/text_training.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ledger/format/names.h"
#include "ledger/report/steps.h"
#include "ledger/report/units.h"

namespace ledger::report {
namespace {

using attribution::Category;
using attribution::CategoryName;

constexpr std::size_t kNameWidth = 60;
constexpr std::size_t kMaxOtherNames = 3;
constexpr std::size_t kMaxListed = 5;

// "4", "2.5", "0.02": as few digits as say it.
std::string Width(double bytes) {
  const double hundredths = std::round(bytes * 100);
  if (std::fmod(hundredths, 100) == 0) return absl::StrFormat("%.0f", bytes);
  return std::fmod(hundredths, 10) == 0 ? absl::StrFormat("%.1f", bytes) : absl::StrFormat("%.2f", bytes);
}

std::string Changes(const StepChange& change) {
  std::vector<std::string> parts;
  for (const auto& [category, bytes] : change.categories) {
    if (parts.size() == kMaxListed) break;
    if (SignedGib(bytes) == SignedGib(0) || SignedGib(bytes) == SignedGib(-1)) continue;
    parts.push_back(absl::StrCat(CategoryName(category), " ", SignedGib(bytes)));
  }
  return absl::StrJoin(parts, ", ");
}

// --- Steps ---

void FirstStep(std::string& out, const std::vector<StepReport>& steps) {
  const auto change = AfterFirstStep(steps);
  if (!change) return;
  if (change->bytes == 0) {
    Line(out, absl::StrCat("  The first step's peak is that of later ones: ", Gib(steps.front().peak_bytes)));
    return;
  }
  const auto to = std::find_if(steps.begin(), steps.end(), [&](const auto& step) { return step.step == change->to; });
  Line(out, absl::StrCat("  The first step's peak is ", Gib(steps.front().peak_bytes), " (", steps.front().peak_phase,
                         "), that of step ", change->to, " ", Gib(to->peak_bytes), " (", to->peak_phase, "), ",
                         SignedGib(change->bytes), ": ", Changes(*change)));
}

void Rise(std::string& out, const std::vector<StepReport>& steps) {
  const auto rise = SteadyRise(steps);
  if (!rise) return;
  const double a_step = static_cast<double>(rise->bytes) / static_cast<double>(rise->to - rise->from);
  Line(out, absl::StrFormat("  STILL RISING: the peak of each step from %d to %d is above the one before, by %.1f MiB "
                            "a step: %s",
                            rise->from, rise->to, a_step / (1 << 20), Changes(*rise)));
}

void Growing(std::string& out, const RankReport& rank) {
  for (std::size_t i = 0; i < std::min(rank.growth.size(), kMaxListed); ++i) {
    const attribution::Growth& growth = rank.growth[i];
    Line(out, absl::StrFormat("  GROWING with every %s: %s, %s, by %.1f MiB and %s each over the last %d; %s GiB alive "
                              "in %s",
                              growth.evaluation ? "evaluation" : "step", CategoryName(growth.category),
                              CutFront(Printable(growth.member), kNameWidth),
                              static_cast<double>(growth.grown_bytes / growth.rounds) / (1 << 20),
                              Count((growth.grown_blocks + growth.rounds - 1) / growth.rounds, "block"), growth.rounds,
                              Gib(growth.live_bytes), Count(growth.live_blocks, "block")));
    if (!growth.scope.empty() && growth.scope != growth.member) {
      Line(out, absl::StrCat("    allocated in ", CutFront(Printable(growth.scope), 2 * kNameWidth)));
    }
  }
  if (rank.growth.size() > kMaxListed) {
    Line(out, absl::StrCat("  and ", Count(rank.growth.size() - kMaxListed, "more place"), " that grow"));
  }
}

// --- Model state ---

// "optimizer_state 8 (exp_avg 4, exp_avg_sq 4)".
std::string Widths(const ModelSummary& model) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < attribution::kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    std::vector<std::string> keys;
    for (const StateWidth& width : model.widths) {
      if (width.category != category || width.key.empty() || keys.size() == kMaxListed) continue;
      const std::string each = Width(model.PerParameter(width.bytes));
      if (each != "0") keys.push_back(absl::StrCat(Printable(width.key), " ", each));
    }
    const std::uint64_t bytes = model.Bytes(category);
    if (bytes == 0) continue;
    parts.push_back(absl::StrCat(CategoryName(category), " ", Width(model.PerParameter(bytes)),
                                 keys.empty() ? "" : absl::StrCat(" (", absl::StrJoin(keys, ", "), ")")));
  }
  return absl::StrJoin(parts, ", ");
}

std::string Factor(std::uint64_t whole, std::uint64_t held) {
  if (held == 0) return "none";
  const double factor = static_cast<double>(whole) / static_cast<double>(held);
  return std::abs(factor - 1) < 0.005 ? "whole" : absl::StrFormat("1 in %s", Width(factor));
}

// Where some categories are sharded and others are not.
std::string Factors(const ModelSummary& model, const ModelStateReport& state) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < attribution::kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    const std::uint64_t whole = model.Bytes(category);
    if (whole != 0) parts.push_back(absl::StrCat(CategoryName(category), " ", Factor(whole, state.held[i])));
  }
  return absl::StrJoin(parts, ", ");
}

// --- Transients ---

std::string Parts(const attribution::TransientUse& use) {
  std::vector<std::string> parts;
  const auto add = [&parts](std::uint64_t bytes, absl::string_view what) {
    if (bytes != 0) parts.push_back(absl::StrCat(Gib(bytes), " ", what));
  };
  add(use.whole, "whole");
  add(use.outputs, "output of all-gathers");
  add(use.ahead, "gathered ahead");
  add(use.reduce_scatter, "to reduce and scatter");
  add(use.other_buffers, "other buffers");
  add(use.workspace, "workspace");
  return absl::StrJoin(parts, " + ");
}

void Transient(std::string& out, absl::string_view what, std::uint64_t bytes, const TransientReport& report) {
  Line(out, absl::StrCat("  ", PadRight(what, 30), PadLeft(Gib(bytes), kColumnWidth), "  ", Parts(report.use), "; ",
                         report.phase, ", ", Seconds(report.time_ns), " s"));
}

void Groups(std::string& out, const GatheredReport& gathered) {
  std::vector<std::string> parts;
  for (const attribution::GatheredGroup& group : gathered.groups) {
    if (parts.size() == kMaxListed) break;
    parts.push_back(absl::StrCat(group.name.empty() ? "the root" : Printable(group.name), " ", Gib(group.bytes),
                                 group.ahead ? " (ahead)" : ""));
  }
  if (gathered.groups.size() > kMaxListed) {
    parts.push_back(absl::StrCat(gathered.groups.size() - kMaxListed, " more"));
  }
  Line(out, absl::StrCat("    gathered then: ", absl::StrJoin(parts, ", ")));
}

void Held(std::string& out, const GatheredReport& gathered) {
  for (std::size_t i = 0; i < std::min(gathered.held.size(), kMaxListed); ++i) {
    const HeldReport& held = gathered.held[i];
    Line(out,
         absl::StrCat("  STAYS GATHERED between passes: ", held.name.empty() ? "the root" : Printable(held.name), ", ",
                      Gib(held.bytes), " GiB in ", Count(held.blocks, "block"), ", from ", Seconds(held.since_ns),
                      " s ", held.until_ns < 0 ? "to the end" : absl::StrCat("to ", Seconds(held.until_ns), " s"), ", ",
                      Count(held.steps, "step"), " old, ", Count(held.forwards, "forward"), " later"));
  }
  if (gathered.held.size() > kMaxListed) {
    Line(out, absl::StrCat("  and ", Count(gathered.held.size() - kMaxListed, "more module")));
  }
}

// The step that is described, or else the last one with any calls.
std::pair<bool, std::uint64_t> StepWithCalls(const RankReport& rank) {
  std::pair<bool, std::uint64_t> last{true, 0};
  for (const attribution::Communication& each : rank.communication) {
    last = {each.in_setup, each.step};
    if (!each.in_setup && each.step == rank.at_peak().step) break;
  }
  return last;
}

std::string RanksOf(const attribution::Communication& each) {
  return each.ranks_of_job.empty() ? "" : absl::StrCat(": ", each.ranks_of_job);
}

// Lower-case letters alone, so that names can be compared across conventions: "allGather_" as "allgather".
std::string Letters(absl::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (absl::ascii_isalpha(static_cast<unsigned char>(c)))
      letters += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return letters;
}

// Does the framework's name for a collective say which operation of NCCL it is?
bool Says(absl::string_view name, record::Operation operation) {
  if (operation == record::Operation::kReceive) return absl::StrContains(Letters(name), "recv");
  return absl::StrContains(Letters(name), Letters(format::OperationName(operation)));
}

// What the framework was asked for, where NCCL was told something else: "; for all_to_all_v_single".
std::string OtherNames(const attribution::Communication& each) {
  std::vector<std::string> names;
  for (const auto& [name, calls] : each.calls_of) {
    if (!Says(name, each.operation)) names.push_back(Printable(name));
  }
  if (names.empty()) return "";
  const std::size_t listed = std::min(names.size(), kMaxOtherNames);
  return absl::StrCat("; for ", absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(listed), ", "),
                      listed == names.size() ? "" : ", ...");
}

}  // namespace

std::string StepsText(const RankReport& rank) {
  std::string out;
  const std::vector<StepReport> steps = StepsOf(rank);
  FirstStep(out, steps);
  Rise(out, steps);
  Growing(out, rank);
  return out;
}

std::string ModelStateText(const RunReport& run, const RankReport& rank) {
  const ModelSummary& model = run.model_state;
  const ModelStateReport& state = rank.model_state;
  const std::uint64_t at_peak = state.persistent_at_peak + state.transient_at_peak;
  if (at_peak == 0) return "";
  std::string out = "\n";
  Line(out, absl::StrCat("Model state (GiB) and what comes on top of it, rank ", rank.rank));
  if (model.parameters != 0) {
    Line(out, absl::StrFormat("  %.1f bytes per parameter: %s; %s parameters", model.PerParameter(model.bytes),
                              Widths(model), Grouped(model.parameters)));
    Line(out, absl::StrFormat("  %s of %s on this rank, %.1f bytes per parameter: %s", Gib(state.Held()),
                              Gib(model.bytes), model.PerParameter(state.Held()), Factors(model, state)));
  } else {
    Line(out, "  bytes per parameter are not known: no parameter was named");
  }
  if (state.unsharded_gradients != 0) {
    Line(out, absl::StrCat("  and at most ", Gib(state.unsharded_gradients),
                           " of whole gradients, before they are reduced"));
  }
  if (state.master_gradients != 0) {
    Line(out, absl::StrCat("  and at most ", Gib(state.master_gradients), " of gradients of master parameters"));
  }
  Line(out, absl::StrCat("  at its allocated peak: persistent ", Gib(state.persistent_at_peak), " (",
                         Percent(state.persistent_at_peak, at_peak), "), transient ", Gib(state.transient_at_peak),
                         " (", Percent(state.transient_at_peak, at_peak), ")"));
  return out;
}

std::string GatheredText(const RankReport& rank) {
  const GatheredReport& gathered = rank.gathered;
  if (gathered.largest.use.Gathered() == 0) return "";
  std::string out = "\n";
  Line(out, absl::StrCat("What sharding adds for moments, rank ", rank.rank, " (GiB, the most at once)"));
  Transient(out, "gathered parameters", gathered.largest.use.Gathered(), gathered.largest);
  Groups(out, gathered);
  if (gathered.most_ahead.use.ahead != 0) {
    Transient(out, "gathered ahead of use", gathered.most_ahead.use.ahead, gathered.most_ahead);
  }
  Transient(out, "buffers and workspace together", gathered.transient.use.Total(), gathered.transient);
  Held(out, gathered);
  return out;
}

std::string CommunicationText(const RankReport& rank) {
  if (rank.communication.empty()) return "";
  const auto step = StepWithCalls(rank);
  std::string out = "\n";
  Line(out, absl::StrCat("Communication of rank ", rank.rank, " in ",
                         step.first ? "its setup" : absl::StrCat("step ", step.second), " (GiB)"));
  Line(out, absl::StrCat("  ", PadRight("operation", 16), PadLeft("calls", 8), PadLeft("payload", kColumnWidth),
                         PadLeft("buffers", kColumnWidth), PadLeft("on the wire", kColumnWidth + 2), "  communicator"));
  for (const attribution::Communication& each : rank.communication) {
    if (std::pair(each.in_setup, each.step) != step) continue;
    Line(out,
         absl::StrCat("  ", PadRight(format::OperationName(each.operation), 16), PadLeft(Grouped(each.calls), 8),
                      PadLeft(Gib(each.payload_bytes), kColumnWidth), PadLeft(Gib(each.buffer_bytes), kColumnWidth),
                      PadLeft(Gib(each.wire_bytes), kColumnWidth + 2), "  ",
                      CutFront(Printable(each.communicator), kNameWidth), RanksOf(each), OtherNames(each)));
  }
  return out;
}

}  // namespace ledger::report
