#include "ledger/replay/peaks.h"

namespace ledger::replay {

void PeakTracker::Mark(std::uint64_t slot) {
  intervals_.push_back({slot, window_, now_});
  for (std::size_t m = 0; m < kMetricCount; ++m) window_[m] = {now_[m], slot};
}

Peak PeakTracker::RunPeak(Metric metric) const {
  const auto m = static_cast<std::size_t>(metric);
  Peak best;
  for (const Interval& interval : intervals_) {
    if (interval.peaks[m].bytes > best.bytes) best = interval.peaks[m];
  }
  if (window_[m].bytes > best.bytes) best = window_[m];
  return best;
}

}  // namespace ledger::replay
