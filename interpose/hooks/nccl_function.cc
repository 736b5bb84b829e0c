#include "interpose/hooks/nccl_function.h"

#include <dlfcn.h>
#include <link.h>

#include "interpose/core/recorder.h"

namespace ledger::nccl {
namespace {

struct CodeRange {
  std::atomic<std::uintptr_t> begin{0};
  std::uintptr_t end = 0;
  std::atomic<bool> claimed{false};
};

// The NCCLs that real functions were found in. More than a few copies in one process would be a mistake of its own.
constexpr std::size_t kCopies = 4;
constinit CodeRange g_copies[kCopies];

std::uintptr_t Value(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

struct Extent {
  std::uintptr_t address;
  std::uintptr_t begin;
  std::uintptr_t end;
};

// The extent of the library that an address lies in; empty when it lies in none.
Extent ExtentAround(const void* address) {
  Extent extent = {Value(address), 0, 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Extent*>(data);
        std::uintptr_t begin = UINTPTR_MAX;
        std::uintptr_t end = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD) continue;
          const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
          begin = start < begin ? start : begin;
          end = start + header.p_memsz > end ? start + header.p_memsz : end;
        }
        if (wanted.address < begin || wanted.address >= end) return 0;
        wanted.begin = begin;
        wanted.end = end;
        return 1;
      },
      &extent);
  return extent;
}

void RememberCopy(const void* function) {
  if (InsideNccl(function)) return;
  const Extent extent = ExtentAround(function);
  for (CodeRange& copy : g_copies) {
    if (copy.claimed.exchange(true, std::memory_order_acq_rel)) continue;
    copy.end = extent.end;
    copy.begin.store(extent.begin, std::memory_order_release);
    return;
  }
}

bool IsOurs(const void* function) {
  Dl_info found;
  Dl_info self;
  return dladdr(function, &found) != 0 && dladdr(reinterpret_cast<const void*>(&InsideNccl), &self) != 0 &&
         found.dli_fbase == self.dli_fbase;
}

// Looks a function up from a library that is loaded already, which also keeps it loaded.
void* LookUp(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  void* function = handle == nullptr ? nullptr : dlsym(handle, name);
  return function == nullptr || IsOurs(function) ? nullptr : function;
}

// A library's scope is searched through the library itself. The program's own scope begins with us, and what comes next
// is meant. A caller without NCCL in its scope (Python's ctypes) got the function by dlsym, from the NCCL that is loaded.
void* Resolve(const char* name, const void* caller) {
  void* function = nullptr;
  if (Dl_info info; dladdr(caller, &info) != 0 && info.dli_fname != nullptr) function = LookUp(info.dli_fname, name);
  if (function == nullptr) function = dlsym(RTLD_NEXT, name);
  if (function == nullptr) function = LookUp("libnccl.so.2", name);
  return function;
}

}  // namespace

void* Function::Find(const void* caller) {
  const std::uintptr_t address = Value(caller);
  for (const Caller& known : callers_) {
    const std::uintptr_t begin = known.begin.load(std::memory_order_acquire);
    if (begin == 0) break;
    if (address >= begin && address < known.end) return known.function;
  }
  return FindSlowly(caller);
}

[[gnu::cold, gnu::noinline]] void* Function::FindSlowly(const void* caller) {
  const ErrnoSaver errno_saver;
  void* function = Resolve(name_, caller);
  if (function == nullptr) {
    Count(record::Loss::kUnresolved);
    return nullptr;
  }
  RememberCopy(function);
  const Extent extent = ExtentAround(caller);
  if (extent.end == 0) return function;  // code made at run time
  for (Caller& free : callers_) {
    if (free.claimed.exchange(true, std::memory_order_acq_rel)) continue;
    free.function = function;
    free.end = extent.end;
    free.begin.store(extent.begin, std::memory_order_release);
    break;
  }
  return function;  // with more callers than that, the rest look it up each time
}

bool InsideNccl(const void* address) {
  for (const CodeRange& copy : g_copies) {
    const std::uintptr_t begin = copy.begin.load(std::memory_order_acquire);
    if (begin == 0) return false;
    if (Value(address) >= begin && Value(address) < copy.end) return true;
  }
  return false;
}

}  // namespace ledger::nccl
