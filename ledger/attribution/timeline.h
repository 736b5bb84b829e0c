// Bytes of each category over time: their maxima, and the high-water mark of every phase.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ledger/attribution/category.h"
#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"

namespace ledger::attribution {

using CategoryBytes = std::array<std::uint64_t, kCategoryCount>;

struct CategoryMaximum {
  std::uint64_t bytes = 0;
  std::uint64_t slot = 0;  // the first at which it was reached
};

// One phase of one step.
struct PhaseUse {
  std::uint32_t interval = 0;  // of PhaseTimeline::intervals()
  std::uint64_t begin_bytes = 0, peak_bytes = 0, end_bytes = 0;
  std::uint64_t peak_slot = 0;
  CategoryBytes at_peak{}, at_end{};
};

struct CategoryTimeline {
  std::array<CategoryMaximum, kCategoryCount> maxima{};
  // The largest sum of bytes alive at once.
  std::uint64_t peak_bytes = 0, peak_slot = 0;
  std::uint64_t sum_of_maxima = 0;
  std::vector<PhaseUse> phases;  // in order; those in which nothing happened have a peak at their beginning
};

// One pass over the lives, whose categories and phases are known.
CategoryTimeline MakeTimeline(const DeviceLives& lives, const PhaseTimeline& phases);

}  // namespace ledger::attribution
