// Ticks: the cheapest clock that is good enough to order and place events, and its relation to the system's clocks.
#pragma once

#include <cstdint>

#include "interpose/record/record.h"

namespace ledger {

// One instant, read from all clocks.
struct ClockReading {
  std::uint64_t ticks;
  std::uint64_t monotonic_ns;
  std::uint64_t realtime_ns;
};

// Decides what Ticks() reads: the time-stamp counter where the processor calls it invariant and the kernel has not
// found it unstable, CLOCK_MONOTONIC otherwise. Before the first call it is CLOCK_MONOTONIC. Cold (it reads sysfs).
record::TicksSource ChooseTicksSource();

std::uint64_t Ticks();
ClockReading ReadClocks();

// The same reading, for an instant at which the source was not chosen yet: `counter` is the raw time-stamp counter.
struct EarlyReading {
  std::uint64_t counter;
  std::uint64_t monotonic_ns;
  std::uint64_t realtime_ns;
};
EarlyReading ReadClocksEarly();
ClockReading FromEarly(const EarlyReading& early);

}  // namespace ledger
