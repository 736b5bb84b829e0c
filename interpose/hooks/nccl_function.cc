#include "interpose/hooks/nccl_function.h"

#include "interpose/core/recorder.h"

namespace ledger::nccl {
namespace {

// The NCCLs that real functions were found in; `begin` is written last. More than a few copies in one process would be
// a mistake of its own.
struct Copy {
  std::atomic<std::uintptr_t> begin{0};
  std::uintptr_t end = 0;
  std::atomic<bool> claimed{false};
};
constexpr std::size_t kCopies = 4;
constinit Copy g_copies[kCopies];

}  // namespace

bool InsideNccl(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  for (const Copy& copy : g_copies) {
    const std::uintptr_t begin = copy.begin.load(std::memory_order_acquire);
    if (begin == 0) return false;
    if (value >= begin && value < copy.end) return true;
  }
  return false;
}

[[gnu::cold, gnu::noinline]] void Function::Note(const void* function) {
  if (function == nullptr) {
    Count(record::Loss::kUnresolved);
    return;
  }
  seen_.store(true, std::memory_order_relaxed);
  if (InsideNccl(function)) return;
  const Extent extent = ExtentAround(function);
  for (Copy& copy : g_copies) {
    if (copy.claimed.exchange(true, std::memory_order_acq_rel)) continue;
    copy.end = extent.end;
    copy.begin.store(extent.begin, std::memory_order_release);
    return;
  }
}

}  // namespace ledger::nccl
