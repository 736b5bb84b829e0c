// Stream-ordered allocation, and moves of memory between places.
#include "tools/simgpu/runtime/stream_api.h"

using namespace simgpu::runtime;

extern "C" {

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemAllocAsync>(pointer, size, stream);
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemAllocFromPoolAsync>(pointer, size, pool, stream);
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemFreeAsync>(pointer, stream);
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, cudaMemLocation location, unsigned int flags,
                                 cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemPrefetchAsync>(pointer, count, location, flags, stream);
}

cudaError_t cudaMemPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count, cudaMemLocation* locations,
                                      size_t* location_indices, size_t location_count, unsigned long long flags,
                                      cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemPrefetchBatchAsync>(pointers, sizes, count, locations, location_indices,
                                                                  location_count, flags, stream);
}

cudaError_t cudaMemDiscardBatchAsync(void** pointers, size_t* sizes, size_t count, unsigned long long flags,
                                     cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemDiscardBatchAsync>(pointers, sizes, count, flags, stream);
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void** pointers, size_t* sizes, size_t count,
                                                cudaMemLocation* locations, size_t* location_indices,
                                                size_t location_count, unsigned long long flags, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemDiscardAndPrefetchBatchAsync>(
      pointers, sizes, count, locations, location_indices, location_count, flags, stream);
}

cudaError_t cudaSignalExternalSemaphoresAsync(const cudaExternalSemaphore_t* semaphores,
                                              const cudaExternalSemaphoreSignalParams* params, unsigned int count,
                                              cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuSignalExternalSemaphoresAsync>(semaphores, params, count, stream);
}

cudaError_t cudaWaitExternalSemaphoresAsync(const cudaExternalSemaphore_t* semaphores,
                                            const cudaExternalSemaphoreWaitParams* params, unsigned int count,
                                            cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuWaitExternalSemaphoresAsync>(semaphores, params, count, stream);
}

}  // extern "C"
