// cuDNN's graph interface: descriptors of tensors, operations, engines and plans, each a set of attributes.
//
// Nothing here understands an operation. A descriptor returns what was set, and the few attributes that the library
// computes have fixed answers: any graph has one engine, one configuration, and a plan that launches one kernel.
// Callers pre-create the descriptors that they want filled in, so "one configuration" means that the first one is left
// as is.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "tools/simgpu/math/cudnn_handle.h"

namespace {

constexpr std::int64_t kEngineIndex = 0;

struct Attribute {
  std::int64_t count = 0;
  std::vector<char> bytes;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
};

Descriptor* FromHandle(cudnnBackendDescriptor_t handle) { return static_cast<Descriptor*>(handle); }

size_t ElementSize(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return sizeof(char);
    case CUDNN_TYPE_INT64:
      return sizeof(std::int64_t);
    case CUDNN_TYPE_DOUBLE:
      return sizeof(double);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    case CUDNN_TYPE_FRACTION:
      return 2 * sizeof(std::int64_t);
    default:
      return sizeof(std::int32_t);
  }
}

// The value of an attribute that the library computes; nothing for those that only the caller can set. Where the value
// is a descriptor, the caller's stands (see above) and only the count matters.
std::optional<std::int64_t> ComputedValue(cudnnBackendAttributeName_t name) {
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
    case CUDNN_ATTR_ENGINECFG_ENGINE:
    case CUDNN_ATTR_ENGINECFG_SHARED_MEMORY_USED:
      return 0;
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      return kEngineIndex;
    case CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return static_cast<std::int64_t>(simgpu::math::CudnnWorkspaceBytes());
    default:
      return std::nullopt;
  }
}

void CopyComputed(std::int64_t value, cudnnBackendAttributeType_t type, void* elements) {
  if (type == CUDNN_TYPE_INT64) {
    std::memcpy(elements, &value, sizeof(value));
  } else if (type == CUDNN_TYPE_INT32) {
    const auto narrow = static_cast<std::int32_t>(value);
    std::memcpy(elements, &narrow, sizeof(narrow));
  }
}

}  // namespace

extern "C" {

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *descriptor = new Descriptor{type, {}};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete FromHandle(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) { return CUDNN_STATUS_SUCCESS; }

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* elements) {
  if (descriptor == nullptr || count < 0 || (count != 0 && elements == nullptr)) return CUDNN_STATUS_BAD_PARAM;
  const auto* bytes = static_cast<const char*>(elements);
  Attribute& attribute = FromHandle(descriptor)->attributes[name];
  attribute.count = count;
  attribute.bytes.assign(bytes, bytes + static_cast<size_t>(count) * ElementSize(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested, int64_t* count,
                                       void* elements) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  const bool wants_value = elements != nullptr && requested > 0;
  const auto& attributes = FromHandle(descriptor)->attributes;
  const auto found = attributes.find(name);
  std::int64_t available = 0;
  if (found != attributes.end()) {
    available = found->second.count;
    if (wants_value) {
      const size_t wanted = static_cast<size_t>(requested) * ElementSize(type);
      std::memcpy(elements, found->second.bytes.data(), std::min(wanted, found->second.bytes.size()));
    }
  } else if (const std::optional<std::int64_t> value = ComputedValue(name); value.has_value()) {
    available = 1;
    if (wants_value) CopyComputed(*value, type, elements);
  }
  if (count != nullptr) *count = available;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  return simgpu::math::RunCudnn(handle, "cudnn_graph");
}

}  // extern "C"
