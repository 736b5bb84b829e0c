#include "interpose/hooks/nccl_function.h"

#include <dlfcn.h>
#include <string.h>

#include "interpose/core/recorder.h"

namespace ledger::nccl {
namespace {

// The caller of the outermost hook that this thread is in.
constinit thread_local const void* t_caller = nullptr;

// The NCCLs that real functions were found in; `begin` is written last. More than a few copies in one process would be
// a mistake of its own.
struct Copy {
  std::atomic<std::uintptr_t> begin{0};
  std::uintptr_t end = 0;
  std::atomic<bool> claimed{false};
};
constexpr std::size_t kCopies = 4;
constinit Copy g_copies[kCopies];

bool InsideNccl(const void* address) {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  for (const Copy& copy : g_copies) {
    const std::uintptr_t begin = copy.begin.load(std::memory_order_acquire);
    if (begin == 0) return false;
    if (value >= begin && value < copy.end) return true;
  }
  return false;
}

// An NCCL that was linked into a larger library can't be told from its callers by the address.
bool IsLibraryOfItsOwn(const void* function) {
  Dl_info info;
  if (dladdr(function, &info) == 0 || info.dli_fname == nullptr) return false;
  const char* const slash = strrchr(info.dli_fname, '/');
  const char* const name = slash == nullptr ? info.dli_fname : slash + 1;
  constexpr char kPrefix[] = "libnccl";
  return strncmp(name, kPrefix, sizeof(kPrefix) - 1) == 0;
}

}  // namespace

Entry::Entry(const void* caller)
    : outer_(t_caller),
      caller_(outer_ == nullptr ? caller : outer_),
      internal_(outer_ != nullptr || InsideNccl(caller)) {
  t_caller = caller_;
}

Entry::~Entry() { t_caller = outer_; }

[[gnu::cold, gnu::noinline]] void Function::Note(const void* function) {
  if (function == nullptr) {
    Count(record::Loss::kUnresolved);
    return;
  }
  seen_.store(true, std::memory_order_relaxed);
  if (InsideNccl(function) || !IsLibraryOfItsOwn(function)) return;
  const Extent extent = ExtentAround(function);
  for (Copy& copy : g_copies) {
    if (copy.claimed.exchange(true, std::memory_order_acq_rel)) continue;
    copy.end = extent.end;
    copy.begin.store(extent.begin, std::memory_order_release);
    return;
  }
}

}  // namespace ledger::nccl
