#include "interpose/core/pinned_memory.h"

#include <atomic>

namespace ledger {
namespace {

// A ring: what is pinned next takes the place of the oldest.
constexpr std::uint32_t kKept = 64;
constinit std::atomic<std::uint64_t> g_addresses[kKept] = {};
constinit std::atomic<std::uint32_t> g_next{0};
constinit std::atomic<PinnedObserver> g_observer{nullptr};

}  // namespace

void NotePinned(std::uint64_t address) {
  const std::uint32_t place = g_next.fetch_add(1, std::memory_order_relaxed) % kKept;
  g_addresses[place].store(address, std::memory_order_relaxed);
  if (const PinnedObserver observe = g_observer.load(std::memory_order_acquire); observe != nullptr) observe();
}

void ForgetPinned(std::uint64_t address) {
  for (std::atomic<std::uint64_t>& kept : g_addresses) {
    std::uint64_t expected = address;
    kept.compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  }
}

bool PinnedLately(std::uint64_t address) {
  if (address == 0) return false;
  for (const std::atomic<std::uint64_t>& kept : g_addresses) {
    if (kept.load(std::memory_order_relaxed) == address) return true;
  }
  return false;
}

void SetPinnedObserver(PinnedObserver observer) { g_observer.store(observer, std::memory_order_release); }

}  // namespace ledger
