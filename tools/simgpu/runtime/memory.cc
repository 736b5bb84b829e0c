// Device, managed and host memory.
#include <algorithm>
#include <iterator>

#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

using namespace simgpu::runtime;

namespace {

// What cudaPointerGetAttributes asks the driver for, in one call.
struct PointerFacts {
  CUmemorytype type = static_cast<CUmemorytype>(0);
  int is_managed = 0;
  int ordinal = -2;  // what the runtime reports for memory that belongs to no device
  CUdeviceptr device_pointer = 0;
  void* host_pointer = nullptr;
};

cudaError_t QueryPointer(const void* pointer, PointerFacts* facts) {
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                  CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                  CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&facts->type, &facts->is_managed, &facts->ordinal, &facts->device_pointer, &facts->host_pointer};
  return CallDriver(GetDriver().cuPointerGetAttributes, static_cast<unsigned>(std::size(wanted)), wanted, values,
                    pointer);
}

cudaMemoryType MemoryType(const PointerFacts& facts) {
  if (facts.is_managed != 0) return cudaMemoryTypeManaged;
  if (facts.type == CU_MEMORYTYPE_HOST) return cudaMemoryTypeHost;
  if (facts.type == CU_MEMORYTYPE_DEVICE || facts.type == CU_MEMORYTYPE_ARRAY) return cudaMemoryTypeDevice;
  return cudaMemoryTypeUnregistered;
}

}  // namespace

extern "C" {

// A size of zero is a success that gives a null pointer; the driver would call it invalid.
cudaError_t cudaMalloc(void** pointer, size_t size) {
  if (pointer == nullptr) return Record(cudaErrorInvalidValue);
  if (size == 0) {
    *pointer = nullptr;
    return Record(EnsureContext());
  }
  return Forward<&Driver::cuMemAlloc>(pointer, size);
}

// Freeing a null pointer is the usual way to initialise the device.
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return Record(EnsureContext());
  return Forward<&Driver::cuMemFree>(pointer);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  constexpr unsigned kElementSize = 4;
  return Forward<&Driver::cuMemAllocPitch>(pointer, pitch, width, height, kElementSize);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return Record(cudaErrorInvalidValue);
  pitched->xsize = extent.width;
  pitched->ysize = extent.height;
  const size_t rows = extent.height * std::max<size_t>(extent.depth, 1);
  return cudaMallocPitch(&pitched->ptr, &pitched->pitch, extent.width, rows);
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned int flags) {
  return Forward<&Driver::cuMemAllocManaged>(pointer, size, flags);
}

cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise advice, cudaMemLocation location) {
  return Forward<&Driver::cuMemAdvise>(pointer, count, advice, location);
}

cudaError_t cudaMemRangeGetAttribute(void* data, size_t size, cudaMemRangeAttribute attribute, const void* pointer,
                                     size_t count) {
  return Forward<&Driver::cuMemRangeGetAttribute>(data, size, attribute, pointer, count);
}

cudaError_t cudaMemRangeGetAttributes(void** data, size_t* sizes, cudaMemRangeAttribute* attributes, size_t number,
                                      const void* pointer, size_t count) {
  return Forward<&Driver::cuMemRangeGetAttributes>(data, sizes, attributes, number, pointer, count);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return Forward<&Driver::cuMemGetInfo>(free_bytes, total_bytes);
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return Record(cudaErrorInvalidValue);
  *attributes = {};
  attributes->device = -2;
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  PointerFacts facts;
  const cudaError_t queried = QueryPointer(pointer, &facts);
  if (queried != cudaSuccess && queried != cudaErrorInvalidValue) return Record(queried);
  attributes->type = MemoryType(facts);
  // Memory that CUDA doesn't know is an answer, not an error.
  if (attributes->type == cudaMemoryTypeUnregistered) {
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  attributes->device = facts.ordinal;
  attributes->devicePointer = reinterpret_cast<void*>(facts.device_pointer);
  attributes->hostPointer = facts.host_pointer;
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned int flags) {
  if (pointer == nullptr) return Record(cudaErrorInvalidValue);
  if (size == 0) {
    *pointer = nullptr;
    return Record(EnsureContext());
  }
  return Forward<&Driver::cuMemHostAlloc>(pointer, size, flags);
}

cudaError_t cudaMallocHost(void** pointer, size_t size) { return cudaHostAlloc(pointer, size, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr) return Record(EnsureContext());
  return Forward<&Driver::cuMemFreeHost>(pointer);
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned int flags) {
  return Forward<&Driver::cuMemHostRegister>(pointer, size, flags);
}

cudaError_t cudaHostUnregister(void* pointer) { return Forward<&Driver::cuMemHostUnregister>(pointer); }

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned int flags) {
  return Forward<&Driver::cuMemHostGetDevicePointer>(device_pointer, host_pointer, flags);
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* pointer) {
  return Forward<&Driver::cuMemHostGetFlags>(flags, pointer);
}

}  // extern "C"
