// What one block event costs the job: calls the hook of PyTorch's allocator that libledger.so has put in front, as the
// allocator does, and prints the nanoseconds of a call. Run it with LD_PRELOAD=libledger.so; without it there is nothing
// to measure.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace {

struct Device {
  std::int8_t type;
  std::int8_t index;
};
using Report = void(void*, std::int64_t, std::size_t, std::size_t, Device);

constexpr int kRounds = 20;
constexpr int kPairs = 50'000;
constexpr Device kCuda{1, 0};

// Nanoseconds for one call: an allocation and its free, by turns.
double OneRound(Report* report) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kPairs; ++i) {
    void* const block = reinterpret_cast<void*>(std::uintptr_t{0x7f0000000000} + static_cast<std::uintptr_t>(i) * 512);
    report(block, 512, 512, 2 << 20, kCuda);
    report(block, -512, 0, 2 << 20, kCuda);
  }
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / (2.0 * kPairs);
}

}  // namespace

int main() {
  auto* const report =
      reinterpret_cast<Report*>(dlsym(RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"));
  if (report == nullptr) {
    std::fprintf(stderr, "block_event: the hook is not there: run it with LD_PRELOAD=libledger.so\n");
    return 1;
  }
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) best = std::min(best, OneRound(report));
  std::printf("%.1f\n", best);
  return 0;
}
