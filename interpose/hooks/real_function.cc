#include "interpose/hooks/real_function.h"

#include <dlfcn.h>
#include <link.h>

#include "interpose/core/recorder.h"

namespace ledger {
namespace {

struct Search {
  std::uintptr_t address;
  Extent found;
};

int Visit(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  Extent extent = {UINTPTR_MAX, 0};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD) continue;
    const std::uintptr_t start = info->dlpi_addr + header.p_vaddr;
    if (start < extent.begin) extent.begin = start;
    if (start + header.p_memsz > extent.end) extent.end = start + header.p_memsz;
  }
  if (search.address < extent.begin || search.address >= extent.end) return 0;
  search.found = extent;
  return 1;
}

bool IsOurs(const void* function) {
  Dl_info found;
  Dl_info self;
  return dladdr(function, &found) != 0 && dladdr(reinterpret_cast<const void*>(&ExtentAround), &self) != 0 &&
         found.dli_fbase == self.dli_fbase;
}

// Looks in a library that is loaded already, and in what it needs; keeps it loaded.
void* LookUp(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  void* const function = handle == nullptr ? nullptr : dlsym(handle, name);
  return function == nullptr || IsOurs(function) ? nullptr : function;
}

// A library's scope is searched through the library itself: one that was opened with a scope of its own is not seen by
// RTLD_NEXT. The program's own scope begins with us, and the next in it is meant. A caller that has the function in
// neither (Python's ctypes) got it by dlsym, from the copy that is loaded.
void* Resolve(const char* name, const char* soname, const void* caller) {
  void* function = nullptr;
  if (Dl_info info; dladdr(caller, &info) != 0 && info.dli_fname != nullptr) function = LookUp(info.dli_fname, name);
  if (function == nullptr) function = dlsym(RTLD_NEXT, name);
  if (function == nullptr) function = LookUp(soname, name);
  return function;
}

}  // namespace

Extent ExtentAround(const void* address) {
  Search search = {reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(Visit, &search);
  return search.found;
}

[[gnu::cold, gnu::noinline]] void* RealFunction::FindSlowly(const void* caller) {
  const ErrnoSaver errno_saver;
  void* const function = Resolve(name_, soname_, caller);
  const Extent extent = ExtentAround(caller);
  if (extent.end == 0) return function;  // code that was made at run time
  for (Caller& free : callers_) {
    if (free.claimed.exchange(true, std::memory_order_acq_rel)) continue;
    free.function = function;
    free.end = extent.end;
    free.begin.store(extent.begin, std::memory_order_release);
    break;
  }
  return function;  // with more callers than there are places, the rest look it up each time
}

}  // namespace ledger
