// A driver that gives out what other processes and other APIs own: fixed handles and addresses, and nothing behind
// them.
#include <cstdint>

#include "interpose/core/cuda_headers.h"

extern "C" {

CUresult cuImportExternalMemory(CUexternalMemory* object, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* descriptor) {
  if (descriptor->handle.fd < 0) return CUDA_ERROR_INVALID_VALUE;
  *object = reinterpret_cast<CUexternalMemory>(std::uintptr_t{0xE1000});
  return CUDA_SUCCESS;
}

CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr* address, CUexternalMemory,
                                         const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* descriptor) {
  *address = 0xE2000000 + descriptor->offset;
  return CUDA_SUCCESS;
}

CUresult cuDestroyExternalMemory(CUexternalMemory) { return CUDA_SUCCESS; }

CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle, const CUmulticastObjectProp*) {
  *handle = 0xE3000;
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr, size_t) { return CUDA_SUCCESS; }
CUresult cuMemRelease(CUmemGenericAllocationHandle) { return CUDA_SUCCESS; }
CUresult cuMemFree_v2(CUdeviceptr) { return CUDA_SUCCESS; }
}
