#include "ledger/report/steps.h"

#include <algorithm>
#include <cstdlib>

#include "ledger/attribution/growth.h"

namespace ledger::report {
namespace {

StepChange Change(const StepReport& from, const StepReport& to) {
  StepChange change{from.step, to.step, static_cast<std::int64_t>(to.peak_bytes - from.peak_bytes), {}};
  for (std::size_t i = 0; i < attribution::kCategoryCount; ++i) {
    const auto bytes = static_cast<std::int64_t>(to.at_peak[i] - from.at_peak[i]);
    if (bytes != 0) change.categories.emplace_back(static_cast<attribution::Category>(i), bytes);
  }
  std::stable_sort(change.categories.begin(), change.categories.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.second) > std::abs(b.second); });
  return change;
}

}  // namespace

std::vector<StepReport> StepsOf(const RankReport& rank) {
  std::vector<StepReport> steps;
  for (const PhaseReport& phase : rank.phases) {
    if (phase.in_step && (steps.empty() || steps.back().step != phase.step)) {
      steps.emplace_back().step = phase.step;
    }
    if (steps.empty()) continue;
    StepReport& step = steps.back();
    step.end_bytes = phase.end_bytes;
    if (phase.peak_bytes <= step.peak_bytes) continue;
    step.peak_bytes = phase.peak_bytes;
    step.peak_time_ns = phase.peak_time_ns;
    step.peak_phase = phase.name;
    step.at_peak = phase.at_peak;
  }
  return steps;
}

std::optional<StepChange> AfterFirstStep(const std::vector<StepReport>& steps) {
  if (steps.size() < 2) return std::nullopt;
  const auto highest = std::max_element(steps.begin() + 1, steps.end(), [](const StepReport& a, const StepReport& b) {
    return a.peak_bytes < b.peak_bytes;
  });
  return Change(steps.front(), *highest);
}

std::optional<StepChange> SteadyRise(const std::vector<StepReport>& steps) {
  if (steps.size() < attribution::kFewestRounds) return std::nullopt;
  const std::size_t watched = std::max(attribution::kFewestRounds - 1, (steps.size() + 1) / 2);
  const std::size_t first = steps.size() - watched;
  for (std::size_t i = first + 1; i < steps.size(); ++i) {
    if (steps[i].peak_bytes <= steps[i - 1].peak_bytes) return std::nullopt;
  }
  return Change(steps[first], steps.back());
}

}  // namespace ledger::report
