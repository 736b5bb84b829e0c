// The framework makes a SavedVariable for every tensor that a node keeps for backward. Its constructor is called across
// library borders, so it passes through here; the adapter, when there is one, looks at what was saved.
//
// The object is a temporary that is moved into its node: nothing may be keyed on its address. The constructor from an
// optional tensor calls this one. A hook of the program may raise out of the real constructor: nothing here needs
// undoing.
#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>

#include "interpose/core/line.h"
#include "interpose/core/real_dlsym.h"
#include "interpose/core/recorder.h"
#include "interpose/torch/adapter_host.h"

namespace ledger {
namespace {

// torch::autograd::SavedVariable::SavedVariable(at::Tensor const&, bool is_output, bool is_inplace_on_view)
#define LEDGER_SAVED_VARIABLE "_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb"

using Constructor = void(void* self, const void* tensor, bool is_output, bool is_inplace_on_view);

constinit std::atomic<Constructor*> g_original{nullptr};

[[gnu::cold, gnu::noinline]] Constructor* FindOriginal(Constructor* ours) {
  const ErrnoSaver errno_saver;
  void* found = SymbolOfLoaded("libtorch_cpu.so", LEDGER_SAVED_VARIABLE);
  // A framework that was linked in one piece.
  if (found == nullptr) found = SymbolOfLoaded("libtorch.so", LEDGER_SAVED_VARIABLE);
  if (found == nullptr && RealDlsym() != nullptr) found = RealDlsym()(RTLD_NEXT, LEDGER_SAVED_VARIABLE);
  if (found == nullptr || found == reinterpret_cast<void*>(ours)) {
    // Somebody was linked against it, so it is somewhere; without it there would be an object that was never made.
    Say("the framework's SavedVariable constructor cannot be found; run without the ledger and report this");
    abort();
  }
  auto* const original = reinterpret_cast<Constructor*>(found);
  g_original.store(original, std::memory_order_release);
  return original;
}

}  // namespace

extern "C" {
Constructor LedgerSavedVariable __asm__(LEDGER_SAVED_VARIABLE) __attribute__((visibility("default")));

void LedgerSavedVariable(void* self, const void* tensor, bool is_output, bool is_inplace_on_view) {
  Constructor* original = g_original.load(std::memory_order_acquire);
  if (original == nullptr) [[unlikely]]
    original = FindOriginal(LedgerSavedVariable);
  const Adapter* const adapter = AttachedAdapter();
  if (adapter == nullptr) return original(self, tensor, is_output, is_inplace_on_view);
  original(self, tensor, is_output, is_inplace_on_view);
  if (Active()) adapter->saved_tensor(self, tensor, is_output);
}
}  // extern "C"

}  // namespace ledger
