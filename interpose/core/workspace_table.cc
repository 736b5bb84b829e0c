#include "interpose/core/workspace_table.h"

#include <atomic>

namespace ledger {
namespace {

// A process has a workspace or two per thread, stream and library. The parent's, which a forked child finds here, are
// memory that the child cannot use.
constexpr std::uint32_t kPlacesLog2 = 8;
constinit std::atomic<std::uint64_t> g_workspaces[1u << kPlacesLog2] = {};

std::atomic<std::uint64_t>& PlaceOf(std::uint64_t address) {
  return g_workspaces[(address * 0x9E3779B97F4A7C15u) >> (64 - kPlacesLog2)];
}

}  // namespace

bool NewWorkspace(std::uint64_t address) {
  std::atomic<std::uint64_t>& place = PlaceOf(address);
  if (place.load(std::memory_order_relaxed) == address) return false;
  return place.exchange(address, std::memory_order_relaxed) != address;
}

void ForgetWorkspace(std::uint64_t address) {
  std::atomic<std::uint64_t>& place = PlaceOf(address);
  // Not an exchange: where another thread puts a different workspace in meanwhile, that one is named once more.
  if (place.load(std::memory_order_relaxed) == address) [[unlikely]]
    place.store(0, std::memory_order_relaxed);
}

}  // namespace ledger
