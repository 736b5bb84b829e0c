// Memory pools of stream-ordered allocation. The allocations themselves are in stream/allocate.cc.
#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

using namespace simgpu::runtime;

// The two APIs share these layouts, so that pointers to them can be passed on.
static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return ForwardWithoutContext<&Driver::cuDeviceGetDefaultMemPool>(pool, device);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return ForwardWithoutContext<&Driver::cuDeviceSetMemPool>(device, pool);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return ForwardWithoutContext<&Driver::cuDeviceGetMemPool>(pool, device);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return ForwardWithoutContext<&Driver::cuMemGetDefaultMemPool>(pool, location, type);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType type) {
  return ForwardWithoutContext<&Driver::cuMemGetMemPool>(pool, location, type);
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type, cudaMemPool_t pool) {
  return ForwardWithoutContext<&Driver::cuMemSetMemPool>(location, type, pool);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return Forward<&Driver::cuMemPoolCreate>(pool, props);
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) { return Forward<&Driver::cuMemPoolDestroy>(pool); }

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep) { return Forward<&Driver::cuMemPoolTrimTo>(pool, keep); }

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return Forward<&Driver::cuMemPoolSetAttribute>(pool, attribute, value);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return Forward<&Driver::cuMemPoolGetAttribute>(pool, attribute, value);
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* descriptions, size_t count) {
  return Forward<&Driver::cuMemPoolSetAccess>(pool, descriptions, count);
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* location) {
  return Forward<&Driver::cuMemPoolGetAccess>(flags, pool, location);
}

cudaError_t cudaMemPoolExportToShareableHandle(void* handle, cudaMemPool_t pool, cudaMemAllocationHandleType type,
                                               unsigned int flags) {
  return Forward<&Driver::cuMemPoolExportToShareableHandle>(handle, pool, type, flags);
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* handle, cudaMemAllocationHandleType type,
                                                 unsigned int flags) {
  return Forward<&Driver::cuMemPoolImportFromShareableHandle>(pool, handle, type, flags);
}

cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
  return Forward<&Driver::cuMemPoolExportPointer>(data, pointer);
}

cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData* data) {
  return Forward<&Driver::cuMemPoolImportPointer>(pointer, pool, data);
}

}  // extern "C"
