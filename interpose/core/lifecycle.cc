// The library's beginning and end in a process: when it is loaded, when the process forks, when it exits.
#include "interpose/core/options.h"
#include "interpose/core/process.h"
#include "interpose/core/recorder.h"

// Both weak: glibc has the first in its shared object, musl the second, and a preloaded library must not have a symbol
// that the program's C library lacks.
extern "C" {
[[gnu::weak]] int __register_atfork(void (*prepare)(), void (*parent)(), void (*child)(), void* dso);
[[gnu::weak]] int pthread_atfork(void (*prepare)(), void (*parent)(), void (*child)());
[[gnu::visibility("hidden")]] extern void* __dso_handle;
}

namespace ledger {
namespace {

// The child starts anew: dormant, with a file of its own when it does something that matters. vfork and posix_spawn run
// no handlers and need none: such a child shares or replaces the memory, and only calls exec.
void InForkedChild() {
  ForgetParent();
  ProcessState().store(SwitchedOff() ? State::kOff : State::kDormant);
}

[[gnu::constructor]] void OnLoad() {
  if (SwitchedOff()) {
    ProcessState().store(State::kOff);
    return;
  }
  SetLoadReading(ReadClocksEarly());
  PlaceStateForForks();
  if (__register_atfork != nullptr) {
    __register_atfork(nullptr, nullptr, InForkedChild, &__dso_handle);
  } else if (pthread_atfork != nullptr) {
    pthread_atfork(nullptr, nullptr, InForkedChild);
  }
}

// Static destructors of the program and of other libraries may still free memory before this one runs; what comes after
// it is not recorded, and CUDA may be gone by then.
[[gnu::destructor]] void OnExit() { EndLedger(); }

}  // namespace
}  // namespace ledger
