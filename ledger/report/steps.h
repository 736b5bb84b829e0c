// How a rank's memory went from step to step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ledger/report/model.h"

namespace ledger::report {

// With what lies between it and the next one.
struct StepReport {
  std::uint64_t step = 0;
  std::uint64_t peak_bytes = 0, end_bytes = 0;
  std::int64_t peak_time_ns = 0;
  std::string peak_phase;  // "backward"
  std::array<std::uint64_t, attribution::kCategoryCount> at_peak{};
};

std::vector<StepReport> StepsOf(const RankReport& rank);

// Bytes at the peak of one step beyond those at another's, by category, the largest change first.
struct StepChange {
  std::uint64_t from = 0, to = 0;  // steps
  std::int64_t bytes = 0;
  std::vector<std::pair<attribution::Category, std::int64_t>> categories;
};

// From the first step to the highest of the later ones: what is made lazily shows here. Nothing with one step only.
std::optional<StepChange> AfterFirstStep(const std::vector<StepReport>& steps);

// Over the later half of the steps, where the peak rose with each of them; nothing where it did not, or with fewer
// steps than show that.
std::optional<StepChange> SteadyRise(const std::vector<StepReport>& steps);

}  // namespace ledger::report
