#include "interpose/core/collective_source.h"

#include <atomic>

namespace ledger {
namespace {

// Written once, before the flag.
constinit CollectiveSource g_source = {};
constinit std::atomic<bool> g_is_set{false};

}  // namespace

void SetCollectiveSource(const CollectiveSource& source) {
  g_source = source;
  g_is_set.store(true, std::memory_order_release);
}

const CollectiveSource* CurrentCollectiveSource() {
  return g_is_set.load(std::memory_order_acquire) ? &g_source : nullptr;
}

}  // namespace ledger
