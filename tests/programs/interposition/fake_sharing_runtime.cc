// The runtime in front of fake_sharing_driver.cc: it goes through it, as the genuine one does.
#include "interpose/core/cuda_headers.h"

extern "C" {

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t* object, const cudaExternalMemoryHandleDesc* descriptor) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC below = {};
  below.handle.fd = descriptor->handle.fd;
  below.size = descriptor->size;
  return cuImportExternalMemory(reinterpret_cast<CUexternalMemory*>(object), &below) == CUDA_SUCCESS
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void** pointer, cudaExternalMemory_t object,
                                              const cudaExternalMemoryBufferDesc* descriptor) {
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC below = {};
  below.offset = descriptor->offset;
  below.size = descriptor->size;
  cuExternalMemoryGetMappedBuffer(reinterpret_cast<CUdeviceptr*>(pointer), reinterpret_cast<CUexternalMemory>(object),
                                  &below);
  return cudaSuccess;
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t object) {
  cuDestroyExternalMemory(reinterpret_cast<CUexternalMemory>(object));
  return cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  cuMemFree_v2(reinterpret_cast<CUdeviceptr>(pointer));
  return cudaSuccess;
}
}
