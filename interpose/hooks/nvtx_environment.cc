#include "interpose/hooks/nvtx_environment.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "interpose/core/options.h"
#include "interpose/hooks/nvtx_injection.h"
#include "interpose/include/ledger/ledger.h"

#pragma weak environ  // so that its address may be null: IsRelocated

namespace ledger::nvtx {
namespace {

constexpr char kInjectionVariable[] = "NVTX_INJECTION64_PATH";
constexpr char kNextVariable[] = "LEDGER_NVTX_NEXT";

using GetEnvironment = char* (*)(const char*);
constinit std::atomic<GetEnvironment> g_real_getenv{nullptr};
constinit std::atomic<bool> g_claimed{false};

// Has the loader relocated this library? Before that, in another library's ifunc resolver, nothing may be called.
bool IsRelocated() { return &environ != nullptr; }

// The environment without the C library's help.
char* Search(const char* name) {
  if (environ == nullptr) return nullptr;
  const std::size_t length = strlen(name);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

bool SameFile(const char* left, const char* right) {
  struct stat a, b;
  return stat(left, &a) == 0 && stat(right, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

void ClaimInjectionPath() {
  if (g_claimed.exchange(true, std::memory_order_acq_rel)) return;
  if (!IsPreloaded() || SwitchedOff()) return;
  Dl_info self;
  char path[PATH_MAX];
  // The loader may know us by a relative path, which means another file once the program has changed its directory.
  if (dladdr(reinterpret_cast<const void*>(&InitializeInjectionNvtx2), &self) == 0 || self.dli_fname == nullptr ||
      realpath(self.dli_fname, path) == nullptr) {
    return;
  }
  const char* taken = Search(kInjectionVariable);
  if (taken != nullptr && *taken != '\0') {
    if (SameFile(taken, path)) return;  // we, in the parent process; it left the other tool's path as well
    setenv(kNextVariable, taken, 1);
  } else {
    unsetenv(kNextVariable);
  }
  setenv(kInjectionVariable, path, 1);
}

const char* OtherToolsPath() {
  const char* path = Search(kNextVariable);
  return path == nullptr || *path == '\0' ? nullptr : path;
}

bool IsPreloaded() {
  // NVTX opens its tools with a scope of their own, where the rest of the process does not look.
  void* program = dlopen(nullptr, RTLD_LAZY);
  if (program == nullptr) return false;
  const bool found = dlsym(program, "ledger_api_version") == reinterpret_cast<void*>(&ledger_api_version);
  dlclose(program);
  return found;
}

namespace {

[[gnu::constructor]] void OnLoad() {
  ClaimInjectionPath();
  g_real_getenv.store(reinterpret_cast<GetEnvironment>(dlsym(RTLD_NEXT, "getenv")), std::memory_order_release);
}

}  // namespace
}  // namespace ledger::nvtx

// A library that uses NVTX in its own constructor may be initialised before us: the loader starts with the program's
// own libraries. It would read NVTX_INJECTION64_PATH before it is set, and be lost for the whole run; NVTX asks only
// once. So we answer for the environment until our constructor has run, and from then on the C library does.
extern "C" [[gnu::visibility("default")]] char* getenv(const char* name) noexcept {
  const ledger::nvtx::GetEnvironment real = ledger::nvtx::g_real_getenv.load(std::memory_order_acquire);
  if (real != nullptr) return real(name);
  if (!ledger::nvtx::IsRelocated()) return nullptr;
  if (strcmp(name, ledger::nvtx::kInjectionVariable) == 0) ledger::nvtx::ClaimInjectionPath();
  return ledger::nvtx::Search(name);
}
