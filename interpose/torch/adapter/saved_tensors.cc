// What a node keeps for backward: the storage behind a SavedVariable, with the op that saves it.
#include <ATen/SequenceNumber.h>
#include <ATen/core/Tensor.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>
#include <torch/csrc/autograd/saved_variable.h>

#include "interpose/torch/adapter/adapter.h"

namespace ledger::adapter {
namespace {

std::uint8_t FlagsOf(const torch::autograd::SavedVariable& saved, const at::Tensor& tensor, bool is_output) {
  std::uint8_t flags = 0;
  if (saved.has_hooks()) flags |= record::kSavedPacked;
  if (is_output) flags |= record::kSavedOutput;
  if (tensor.requires_grad() && tensor.is_leaf()) flags |= record::kSavedLeaf;
  return flags;
}

// The tensor with memory of its own in one that a transform of torch.func works on (grad, vmap), which may be nested.
const at::Tensor& Innermost(const at::Tensor& tensor) {
  const at::Tensor* inner = &tensor;
  while (true) {
    if (const auto* const wrapper = at::functorch::maybeGetTensorWrapper(*inner)) {
      inner = &wrapper->value();
    } else if (const auto* const batched = at::functorch::maybeGetBatchedImpl(*inner)) {
      inner = &batched->value();
    } else {
      return *inner;
    }
  }
}

}  // namespace

void RecordSavedTensor(const void* saved_variable, const void* saved_tensor, bool is_output) try {
  const auto& saved = *static_cast<const at::Tensor*>(saved_tensor);
  if (!saved.defined()) return;
  const at::Tensor& tensor = Innermost(saved);
  if (!tensor.defined()) return;
  if (tensor.key_set().has(c10::DispatchKey::Python)) {
    void* const object = tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj();
    const auto& variable = *static_cast<const torch::autograd::SavedVariable*>(saved_variable);
    if (Host().wrapper_saved(object, FlagsOf(variable, saved, is_output))) return;
  }
  if (!tensor.has_storage()) return;
  const c10::Storage& storage = tensor.unsafeGetTensorImpl()->unsafe_storage();
  // A tensor that stands for another one (a trace's, a sharded one's wrapper) has no memory; asking it may throw.
  const void* const address = storage.data();
  if (address == nullptr) return;
  record::SavedTensor record = {};
  const auto device = static_cast<std::int8_t>(tensor.is_cuda() ? tensor.get_device() : record::kNoDevice);
  record.commit = {static_cast<std::uint16_t>(record::Kind::kSavedTensor), record::Layer::kOp, device, 0};
  record.address = reinterpret_cast<std::uintptr_t>(address);
  record.storage_bytes = storage.nbytes();
  record.tensor_bytes = static_cast<std::uint64_t>(tensor.numel()) * tensor.element_size();
  // The node was made right before; it took the number before the next one.
  record.sequence = static_cast<std::int64_t>(at::sequence_number::peek()) - 1;
  record.scope = Host().current_scope();
  record.flags = FlagsOf(*static_cast<const torch::autograd::SavedVariable*>(saved_variable), saved, is_output);
  Host().append(&record);
} catch (...) {
  return;
}

}  // namespace ledger::adapter
