// Functions of autograd that are called across library borders, or through tables that the loader fills in, and so pass
// through here on their way: when a tensor is saved for backward, when a node of the graph is complete, and when a
// gradient is accumulated.
//
// The framework makes a SavedVariable for every tensor that a node keeps for backward. Its constructor is called across
// library borders; the adapter, when there is one, looks at what was saved.
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

// torch::autograd::fire_node_creation_hooks(c10::intrusive_ptr<torch::autograd::Node> const&)
#define LEDGER_NODE_CREATED                                                                                      \
  "_ZN5torch8autograd24fire_node_creation_hooksERKN3c1013intrusive_ptrINS0_4NodeENS1_6detail34intrusive_target_" \
  "default_null_typeIS3_EEEE"

using NodeCreated = void(const void* node);

// torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&), which returns such a vector: a virtual function.
#define LEDGER_ACCUMULATE_GRAD "_ZN5torch8autograd14AccumulateGrad5applyEOSt6vectorIN2at6TensorESaIS4_EE"

// Stands for the vector. What has a destructor of its own is returned in memory of the caller's, and we pass it on.
struct Tensors {
  ~Tensors();
  void* members[3];
};
using AccumulateGrad = Tensors(void* self, void* gradients);

constinit std::atomic<AccumulateGrad*> g_accumulate_grad{nullptr};
constinit std::atomic<bool> g_sees_gradients{false};
constinit std::atomic<Constructor*> g_saved_variable{nullptr};
constinit std::atomic<NodeCreated*> g_node_created{nullptr};

// The framework's own function behind one of ours; looked up at the first call, kept for good.
template <typename Function>
[[gnu::cold, gnu::noinline]] Function* FindOriginal(const char* name, Function* ours, std::atomic<Function*>& kept) {
  const ErrnoSaver errno_saver;
  void* found = SymbolOfLoaded("libtorch_cpu.so", name);
  // A framework that was linked in one piece.
  if (found == nullptr) found = SymbolOfLoaded("libtorch.so", name);
  if (found == nullptr && RealDlsym() != nullptr) found = RealDlsym()(RTLD_NEXT, name);
  if (found == nullptr || found == reinterpret_cast<void*>(ours)) {
    // Somebody was linked against it, so it is somewhere; to go on without it would be to leave out the framework's
    // work.
    Say("a function of the framework's autograd cannot be found; run without the ledger and report this");
    abort();
  }
  auto* const original = reinterpret_cast<Function*>(found);
  kept.store(original, std::memory_order_release);
  return original;
}

template <typename Function>
Function* Original(const char* name, Function* ours, std::atomic<Function*>& kept) {
  Function* const original = kept.load(std::memory_order_acquire);
  return original != nullptr ? original : FindOriginal(name, ours, kept);
}

// Tells the adapter of a gradient when it goes out of scope. Not when the framework's function throws: there is nothing
// to tell then, and nothing to undo.
class AfterAccumulation {
 public:
  explicit AfterAccumulation(const void* node) : node_(node) {}
  ~AfterAccumulation() {
    const Adapter* const adapter = AttachedAdapter();
    if (adapter == nullptr) return;
    g_sees_gradients.store(true, std::memory_order_relaxed);
    if (Active()) adapter->gradient_accumulated(node_);
  }
  AfterAccumulation(const AfterAccumulation&) = delete;
  AfterAccumulation& operator=(const AfterAccumulation&) = delete;

 private:
  const void* node_;
};

}  // namespace

bool AdapterSeesGradients() { return g_sees_gradients.load(std::memory_order_relaxed); }

extern "C" {
Constructor LedgerSavedVariable __asm__(LEDGER_SAVED_VARIABLE) __attribute__((visibility("default")));
NodeCreated LedgerNodeCreated __asm__(LEDGER_NODE_CREATED) __attribute__((visibility("default")));
AccumulateGrad LedgerAccumulateGrad __asm__(LEDGER_ACCUMULATE_GRAD) __attribute__((visibility("default")));

void LedgerSavedVariable(void* self, const void* tensor, bool is_output, bool is_inplace_on_view) {
  Constructor* const original = Original(LEDGER_SAVED_VARIABLE, LedgerSavedVariable, g_saved_variable);
  const Adapter* const adapter = AttachedAdapter();
  if (adapter == nullptr) return original(self, tensor, is_output, is_inplace_on_view);
  original(self, tensor, is_output, is_inplace_on_view);
  if (Active()) adapter->saved_tensor(self, tensor, is_output);
}

void LedgerNodeCreated(const void* node) {
  if (const Adapter* const adapter = AttachedAdapter(); adapter != nullptr && Active()) adapter->node_created(node);
  return Original(LEDGER_NODE_CREATED, LedgerNodeCreated, g_node_created)(node);
}

Tensors LedgerAccumulateGrad(void* self, void* gradients) {
  AccumulateGrad* const original = Original(LEDGER_ACCUMULATE_GRAD, LedgerAccumulateGrad, g_accumulate_grad);
  const AfterAccumulation after(self);
  return original(self, gradients);
}
}  // extern "C"

}  // namespace ledger
