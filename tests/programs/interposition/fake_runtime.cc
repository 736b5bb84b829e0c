// A CUDA runtime that only says which one it is: built twice, with different SONAMEs.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "interpose/core/cuda_headers.h"

extern "C" {

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = reinterpret_cast<void*>(std::uintptr_t{FAKE_RUNTIME_VERSION} << 32 | bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void*) { return cudaSuccess; }

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = FAKE_RUNTIME_VERSION;
  return cudaSuccess;
}
}
