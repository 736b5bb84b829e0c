// A lock that never blocks the job for good: an acquisition gives up after a bounded time, and the caller counts a
// loss.
#pragma once

#include <sched.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace ledger {

// Not recursive. Held for microseconds; a holder that was descheduled or killed by a signal handler's longjmp makes
// others wait kSleeps * kSleepNs at most. A forked child resets it, as its holder may not exist there.
class SpinLock {
 public:
  bool TryAcquire() { return locked_.exchange(1, std::memory_order_acquire) == 0; }

  [[nodiscard]] bool Acquire() {
    for (int spin = 0; spin < kSpins; ++spin) {
      if (locked_.load(std::memory_order_relaxed) == 0 && TryAcquire()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    return AcquireSlow();
  }

  void Release() { locked_.store(0, std::memory_order_release); }
  void Reset() { locked_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr int kSpins = 200;
  static constexpr int kYields = 200;
  static constexpr int kSleeps = 20'000;
  static constexpr long kSleepNs = 50'000;  // 1 s in all

  [[gnu::cold, gnu::noinline]] bool AcquireSlow() {
    for (int yield = 0; yield < kYields; ++yield) {
      if (TryAcquire()) return true;
      sched_yield();
    }
    for (int sleep = 0; sleep < kSleeps; ++sleep) {
      if (TryAcquire()) return true;
      const timespec pause = {0, kSleepNs};
      nanosleep(&pause, nullptr);
    }
    return false;
  }

  std::atomic<std::uint32_t> locked_{0};
};
static_assert(std::is_trivially_destructible_v<SpinLock>);

}  // namespace ledger
