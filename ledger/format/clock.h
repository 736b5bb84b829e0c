// The recorder's ticks as nanoseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "interpose/record/record.h"

namespace ledger::format {

class Clock {
 public:
  explicit Clock(const record::FileHeader& header);

  // A later relation of ticks to the clocks; one that contradicts those known (time going backwards) is refused.
  bool AddAnchor(std::uint64_t ticks, std::uint64_t monotonic_ns);

  // CLOCK_MONOTONIC at `ticks`: between anchors by interpolation, outside by the rate between the first and the last
  // (neighbouring anchors may lie microseconds apart, and would carry their error far).
  std::int64_t MonotonicNs(std::uint64_t ticks) const;

  // Since the file was opened; negative for what was noted before.
  std::int64_t SinceOpenNs(std::uint64_t ticks) const { return MonotonicNs(ticks) - MonotonicNs(open_ticks_); }

  // CLOCK_REALTIME when the file was opened.
  std::int64_t open_realtime_ns() const { return open_realtime_ns_; }

 private:
  struct Anchor {
    std::uint64_t ticks;
    std::uint64_t ns;
  };
  bool ticks_are_ns_;
  std::uint64_t open_ticks_;
  std::int64_t open_realtime_ns_;
  std::vector<Anchor> anchors_;  // strictly increasing in both
};

}  // namespace ledger::format
