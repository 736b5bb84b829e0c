// A library that is linked to one CUDA runtime, and gets memory from it.
#include <cstdio>

#include "interpose/core/cuda_headers.h"

extern "C" [[gnu::visibility("default")]] void Describe() {
  void* pointer = nullptr;
  const cudaError_t result = cudaMalloc(&pointer, 512);
  std::printf("%s: result %d from runtime %llu\n", CLIENT_NAME, result,
              reinterpret_cast<unsigned long long>(pointer) >> 32);
  cudaFree(pointer);
}
