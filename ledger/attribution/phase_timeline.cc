#include "ledger/attribution/phase_timeline.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ledger/attribution/infer_phases.h"
#include "ledger/format/names.h"

namespace ledger::attribution {

using record::PhaseKind;

PhaseTimeline::PhaseTimeline(const format::LedgerFile& file, const ScopeFactsTable& scopes)
    : slots_(file.slots().size()) {
  for (const std::uint64_t slot : file.phases()) {
    const auto& phase = file.slots()[slot].As<record::Phase>();
    intervals_.push_back({slot, phase.phase, phase.step});
  }
  if (intervals_.empty()) {
    intervals_ = InferPhases(file, scopes);
    inferred_ = true;
  }
  if (intervals_.empty() || intervals_.front().from != 0) intervals_.insert(intervals_.begin(), PhaseInterval{});
  next_backward_.resize(intervals_.size());
  std::uint32_t next = kNoPhase;
  for (std::size_t i = intervals_.size(); i-- > 0;) {
    if (intervals_[i].kind == PhaseKind::kBackward) next = static_cast<std::uint32_t>(i);
    next_backward_[i] = next;
  }
}

std::uint64_t PhaseTimeline::End(std::size_t index) const {
  return index + 1 < intervals_.size() ? intervals_[index + 1].from : slots_;
}

std::size_t PhaseTimeline::IndexAt(std::uint64_t slot) const {
  const auto after =
      std::upper_bound(intervals_.begin(), intervals_.end(), slot,
                       [](std::uint64_t at, const PhaseInterval& interval) { return at < interval.from; });
  return static_cast<std::size_t>(after - intervals_.begin()) - 1;
}

std::string PhaseTimeline::Name(std::size_t index) const {
  const PhaseInterval& interval = intervals_[index];
  return absl::StrCat(InStep(interval.kind) ? absl::StrCat("step ", interval.step, " ") : "",
                      format::PhaseName(interval.kind));
}

bool InStep(PhaseKind kind) {
  return kind == PhaseKind::kForward || kind == PhaseKind::kBackward || kind == PhaseKind::kOptimizer;
}

}  // namespace ledger::attribution
