#include "interpose/core/driver_calls.h"

#include <atomic>

#include "interpose/core/real_dlsym.h"
#include "interpose/record/spin_lock.h"

namespace ledger {
namespace {

constexpr DriverCalls kNone = {};
constinit DriverCalls g_calls = {};
constinit std::atomic<bool> g_found{false};
constinit SpinLock g_lock;

}  // namespace

const DriverCalls& Driver() {
  if (g_found.load(std::memory_order_acquire)) [[likely]]
    return g_calls;
  if (!g_lock.TryAcquire()) return kNone;  // another thread is at it: one sample less
  if (!g_found.load(std::memory_order_relaxed) && SymbolOfLoaded("libcuda.so.1", "cuDriverGetVersion") != nullptr) {
#define LEDGER_FIND_DRIVER_CALL(name) \
  g_calls.name = reinterpret_cast<decltype(&::name)>(SymbolOfLoaded("libcuda.so.1", #name));
    LEDGER_DRIVER_CALLS(LEDGER_FIND_DRIVER_CALL)
#undef LEDGER_FIND_DRIVER_CALL
    g_found.store(true, std::memory_order_release);
  }
  g_lock.Release();
  return g_found.load(std::memory_order_acquire) ? g_calls : kNone;
}

}  // namespace ledger
