#include "interpose/record/clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace ledger {
namespace {

// Written once, before the file opens; every thread that reads it to some effect has seen the recorder become active.
constinit record::TicksSource g_source = record::TicksSource::kMonotonic;

std::uint64_t Nanoseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

#if defined(__x86_64__)
std::uint64_t Counter() { return __rdtsc(); }

bool ProcessorSaysInvariant() {
  constexpr unsigned kPowerManagementLeaf = 0x80000007u;
  constexpr unsigned kInvariantTscBit = 1u << 8;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(kPowerManagementLeaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTscBit) != 0;
}

// The kernel takes the counter off its list when it sees it drift between processors, whatever cpuid says. Where the
// list can't be read (no sysfs in the container), cpuid alone decides.
bool KernelTrustsIt() {
  const int fd = open("/sys/devices/system/clocksource/clocksource0/available_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true;
  char list[256];
  const ssize_t length = read(fd, list, sizeof(list) - 1);
  close(fd);
  if (length <= 0) return true;
  list[length] = '\0';
  return strstr(list, "tsc") != nullptr;
}

bool CounterIsGood() { return ProcessorSaysInvariant() && KernelTrustsIt(); }
#else
std::uint64_t Counter() { return 0; }
bool CounterIsGood() { return false; }
#endif

}  // namespace

record::TicksSource ChooseTicksSource() {
  g_source = CounterIsGood() ? record::TicksSource::kTsc : record::TicksSource::kMonotonic;
  return g_source;
}

std::uint64_t Ticks() {
  if (g_source == record::TicksSource::kTsc) [[likely]]
    return Counter();
  return Nanoseconds(CLOCK_MONOTONIC);
}

ClockReading ReadClocks() {
  ClockReading reading;
  reading.monotonic_ns = Nanoseconds(CLOCK_MONOTONIC);
  reading.ticks = g_source == record::TicksSource::kTsc ? Counter() : reading.monotonic_ns;
  reading.realtime_ns = Nanoseconds(CLOCK_REALTIME);
  return reading;
}

EarlyReading ReadClocksEarly() {
  return EarlyReading{Counter(), Nanoseconds(CLOCK_MONOTONIC), Nanoseconds(CLOCK_REALTIME)};
}

ClockReading FromEarly(const EarlyReading& early) {
  const bool counter = g_source == record::TicksSource::kTsc;
  return ClockReading{counter ? early.counter : early.monotonic_ns, early.monotonic_ns, early.realtime_ns};
}

}  // namespace ledger
