// What the driver says about a pointer.
#include "tools/simgpu/driver/context.h"
#include "tools/simgpu/driver/memory.h"

namespace simgpu {
namespace {

CUmemorytype TypeOf(const Allocation& allocation) {
  return allocation.device == nullptr ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// Writes one attribute; the allocation is null for memory that the driver doesn't know.
CUresult Write(void* data, CUpointer_attribute attribute, CUdeviceptr pointer, const Allocation* allocation) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      Context* context = allocation->context;
      if (context == nullptr && allocation->device != nullptr) context = allocation->device->primary;
      *static_cast<CUcontext*>(data) = ToHandle(context);
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = TypeOf(*allocation);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = pointer;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (allocation->device != nullptr && allocation->kind != MemoryKind::kManaged) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<void**>(data) = reinterpret_cast<void*>(pointer);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(data) = allocation->id;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<bool*>(data) = allocation->kind == MemoryKind::kManaged;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
      const Device* device = allocation->device;
      if (device == nullptr && allocation->context != nullptr) device = allocation->context->device;
      *static_cast<int*>(data) = device == nullptr ? -1 : device->ordinal;
      return CUDA_SUCCESS;
    }
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<int*>(data) = allocation->kind == MemoryKind::kLinear ? 1 : 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = allocation->address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = allocation->bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<int*>(data) = 1;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      *static_cast<cuuint64_t*>(data) = CU_MEM_HANDLE_TYPE_NONE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      *static_cast<int*>(data) = 0;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(data) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(data) = reinterpret_cast<CUmemoryPool>(allocation->pool);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      *static_cast<std::size_t*>(data) = allocation->bytes;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      *static_cast<CUdeviceptr*>(data) = allocation->address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      *static_cast<unsigned long long*>(data) = allocation->id;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      *static_cast<bool*>(data) = false;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// For cuPointerGetAttributes, which gives neutral values for memory that it doesn't know.
void WriteUnknown(void* data, CUpointer_attribute attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = -2;
      return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(data) = 0;
      return;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      *static_cast<bool*>(data) = false;
      return;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      *static_cast<int*>(data) = 0;
      return;
    default:
      *static_cast<cuuint64_t*>(data) = 0;
      return;
  }
}

}  // namespace
}  // namespace simgpu

using simgpu::Allocation;
using simgpu::Guard;

SIMGPU_API cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  SIMGPU_ENTER();
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Allocation* allocation = simgpu::FindAllocation(pointer);
  return allocation == nullptr ? CUDA_ERROR_INVALID_VALUE : simgpu::Write(data, attribute, pointer, allocation);
}

SIMGPU_API cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr pointer) {
  SIMGPU_ENTER();
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Allocation* allocation = simgpu::FindAllocation(pointer);
  for (unsigned i = 0; i < count; ++i) {
    if (allocation == nullptr || simgpu::Write(data[i], attributes[i], pointer, allocation) != CUDA_SUCCESS) {
      simgpu::WriteUnknown(data[i], attributes[i]);
    }
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuPointerSetAttribute(const void*, CUpointer_attribute attribute, CUdeviceptr pointer) {
  SIMGPU_ENTER();
  const Guard guard;
  if (simgpu::FindAllocation(pointer) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
