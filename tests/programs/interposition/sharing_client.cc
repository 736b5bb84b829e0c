// Memory of another API (an external object) at both layers, and a multicast object.
#include <cstdio>

#include "interpose/core/cuda_headers.h"

namespace {

constexpr std::size_t kMiB = 1 << 20;

void AtTheRuntime() {
  cudaExternalMemoryHandleDesc imported = {};
  imported.type = cudaExternalMemoryHandleTypeOpaqueFd;
  imported.handle.fd = -1;
  imported.size = 16 * kMiB;
  cudaExternalMemory_t object = nullptr;
  std::printf("refused %d\n", cudaImportExternalMemory(&object, &imported));
  imported.handle.fd = 3;
  std::printf("import %d\n", cudaImportExternalMemory(&object, &imported));
  cudaExternalMemoryBufferDesc buffer = {};
  buffer.offset = kMiB;
  buffer.size = 4 * kMiB;
  void* pointer = nullptr;
  std::printf("map %d\n", cudaExternalMemoryGetMappedBuffer(&pointer, object, &buffer));
  std::printf("free %d\n", cudaFree(pointer));
  std::printf("destroy %d\n", cudaDestroyExternalMemory(object));
}

void AtTheDriver() {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC imported = {};
  imported.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  imported.handle.fd = 3;
  imported.size = 8 * kMiB;
  CUexternalMemory object = nullptr;
  std::printf("import %d\n", cuImportExternalMemory(&object, &imported));
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = {};
  buffer.size = 2 * kMiB;
  CUdeviceptr address = 0;
  std::printf("map %d\n", cuExternalMemoryGetMappedBuffer(&address, object, &buffer));
  std::printf("free %d\n", cuMemFree_v2(address));
  std::printf("destroy %d\n", cuDestroyExternalMemory(object));
}

void Multicast() {
  CUmulticastObjectProp properties = {};
  properties.numDevices = 2;
  properties.size = 32 * kMiB;
  CUmemGenericAllocationHandle handle = 0;
  std::printf("multicast %d\n", cuMulticastCreate(&handle, &properties));
  std::printf("map %d\n", cuMemMap(0xE4000000, 32 * kMiB, 0, handle, 0));
  std::printf("unmap %d\n", cuMemUnmap(0xE4000000, 32 * kMiB));
  std::printf("release %d\n", cuMemRelease(handle));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void Describe() {
  AtTheRuntime();
  AtTheDriver();
  Multicast();
}
