#include "interpose/core/real_dlsym.h"

#include <dlfcn.h>

#include <atomic>
#include <initializer_list>

#include "interpose/core/elf_symbol.h"

// Weak: musl has none, and would refuse to start a program with this library preloaded.
extern "C" [[gnu::weak]] void* dlvsym(void* handle, const char* name, const char* version);

namespace ledger {
namespace {
constinit std::atomic<DlsymFunction> g_real{nullptr};
}

DlsymFunction RealDlsym() {
  DlsymFunction real = g_real.load(std::memory_order_relaxed);
  if (real != nullptr) [[likely]]
    return real;
  if (dlvsym == nullptr) {
    real = reinterpret_cast<DlsymFunction>(FindInLoadedLibraries("dlsym"));
    g_real.store(real, std::memory_order_relaxed);
    return real;
  }
  // The versions under which glibc exports it: x86-64's first, the one since it moved into libc, aarch64's first.
  for (const char* const version : {"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.17"}) {
    real = reinterpret_cast<DlsymFunction>(dlvsym(RTLD_NEXT, "dlsym", version));
    if (real != nullptr) break;
  }
  g_real.store(real, std::memory_order_relaxed);
  return real;
}

void* SymbolOfLoaded(const char* soname, const char* symbol) {
  const DlsymFunction real = RealDlsym();
  if (real == nullptr) return nullptr;
  void* const library = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    dlerror();  // the program must not find our message
    return nullptr;
  }
  void* const found = real(library, symbol);
  if (found == nullptr) dlerror();
  dlclose(library);
  return found;
}

}  // namespace ledger
