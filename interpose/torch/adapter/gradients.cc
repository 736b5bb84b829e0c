// Where gradients lie, as soon as they are there: said when an AccumulateGrad has stored or added to one.
// Not used here, but all parts are compiled as one, and this cannot follow what the next one includes: its functions
// have namesakes there.
#include <ATen/functorch/BatchedTensorImpl.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include "interpose/torch/adapter/adapter.h"

namespace ledger::adapter {
namespace {

// The storage's address; 0 for a tensor without memory of its own.
std::uint64_t StorageAddress(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return 0;
  return reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl()->unsafe_storage().data());
}

}  // namespace

void RecordGradient(const void* accumulate_grad) try {
  if (!Host().recording()) return;
  const at::Tensor& parameter = static_cast<const torch::autograd::AccumulateGrad*>(accumulate_grad)->variable;
  if (!parameter.defined()) return;
  const at::Tensor& gradient = parameter.grad();
  const std::uint64_t address = StorageAddress(gradient);
  if (address == 0) return;
  record::Name record = {};
  const auto device = static_cast<std::int8_t>(gradient.is_cuda() ? gradient.get_device() : record::kNoDevice);
  record.commit = {static_cast<std::uint16_t>(record::Kind::kName), record::Layer::kOp, device, 0};
  record.address = address;
  record.bytes = gradient.unsafeGetTensorImpl()->unsafe_storage().nbytes();
  record.belongs_to = StorageAddress(parameter);
  record.elements = static_cast<std::uint64_t>(gradient.numel());
  record.element_bytes = static_cast<std::uint8_t>(gradient.element_size());
  record.category = record::NameCategory::kGradient;
  record.flags = record::kNameFromGraph;
  Host().append(&record);
} catch (...) {
  return;  // a gradient without memory of its own, such as one that is only traced
}

}  // namespace ledger::adapter
