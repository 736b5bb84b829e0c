// High-water marks of one device: over the whole run, and between any two marks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ledger::replay {

// What is watched on a device. The names in reports: see MetricName().
enum class Metric : std::uint8_t {
  kAllocated,      // Σ live blocks of the caching allocator
  kReserved,       // Σ its segments
  kStreamOrdered,  // Σ live stream-ordered allocations of the framework (backend:cudaMallocAsync)
  kPoolReserved,   // what stream-ordered pools hold, as they say themselves
  kDeviceUsed,     // what the driver says is used on the device, by everybody
  kKnown,          // Σ everything this process is known to hold
  kCount,
};
inline constexpr std::size_t kMetricCount = static_cast<std::size_t>(Metric::kCount);

struct Peak {
  std::uint64_t bytes = 0;
  std::uint64_t slot = 0;  // the first event at which it was reached
};

using Values = std::array<std::uint64_t, kMetricCount>;
using Peaks = std::array<Peak, kMetricCount>;

// From one mark (or the beginning) to the next (or the end).
struct Interval {
  std::uint64_t end_slot = 0;  // the mark's
  Peaks peaks;
  Values at_end{};
};

class PeakTracker {
 public:
  // The metric has this value from this event on.
  void Set(Metric metric, std::uint64_t value, std::uint64_t slot) {
    const auto m = static_cast<std::size_t>(metric);
    now_[m] = value;
    if (value > window_[m].bytes) window_[m] = {value, slot};
  }

  std::uint64_t now(Metric metric) const { return now_[static_cast<std::size_t>(metric)]; }
  const Values& values() const { return now_; }

  // Ends an interval. A window opens with what is alive at its first instant, as torch.cuda.reset_peak_memory_stats has
  // it.
  void Mark(std::uint64_t slot);

  // Ends the last interval. Intervals after it: none.
  void Finish(std::uint64_t slot) { Mark(slot); }

  const std::vector<Interval>& intervals() const { return intervals_; }

  // Of the whole run so far; the earliest where it was reached more than once.
  Peak RunPeak(Metric metric) const;

 private:
  Values now_{};
  Peaks window_{};
  std::vector<Interval> intervals_;
};

}  // namespace ledger::replay
