// Older forms of entry points that newer ones replaced without changing what they take, and calls that have nothing to
// do on a device that isn't there.

#include "tools/simgpu/driver/context.h"
#include "tools/simgpu/driver/stream.h"

using simgpu::Guard;

// ---- Older forms

#undef cuCtxDestroy
#undef cuCtxPopCurrent
#undef cuCtxPushCurrent
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuMemHostRegister
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuStreamWriteValue32
#undef cuStreamWaitValue32
#undef cuStreamWriteValue64
#undef cuStreamWaitValue64
#undef cuStreamBatchMemOp
SIMGPU_API cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }
SIMGPU_API cuCtxPopCurrent(CUcontext* context) { return cuCtxPopCurrent_v2(context); }
SIMGPU_API cuCtxPushCurrent(CUcontext context) { return cuCtxPushCurrent_v2(context); }
SIMGPU_API cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }
SIMGPU_API cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }
SIMGPU_API cuMemHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(pointer, bytes, flags);
}
SIMGPU_API cuDevicePrimaryCtxRelease(CUdevice device) { return cuDevicePrimaryCtxRelease_v2(device); }
SIMGPU_API cuDevicePrimaryCtxReset(CUdevice device) { return cuDevicePrimaryCtxReset_v2(device); }
SIMGPU_API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}
SIMGPU_API cuStreamWaitValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  return cuStreamWaitValue32_v2(stream, at, value, flags);
}
SIMGPU_API cuStreamWaitValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  return cuStreamWaitValue64_v2(stream, at, value, flags);
}
SIMGPU_API cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned flags) {
  return cuStreamWriteValue32_v2(stream, at, value, flags);
}
SIMGPU_API cuStreamWriteValue64(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
  return cuStreamWriteValue64_v2(stream, at, value, flags);
}
SIMGPU_API cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  return cuStreamBatchMemOp_v2(stream, count, operations, flags);
}

// ---- Profiling that a tool does, not the driver

extern "C" {
__attribute__((visibility("default"))) CUresult cuProfilerInitialize(const char*, const char*, int) {
  return CUDA_SUCCESS;
}
__attribute__((visibility("default"))) CUresult cuProfilerStart() { return CUDA_SUCCESS; }
__attribute__((visibility("default"))) CUresult cuProfilerStop() { return CUDA_SUCCESS; }
}

// ---- The driver's log: there are no entries.

SIMGPU_API cuLogsRegisterCallback(CUlogsCallback callback, void*, CUlogsCallbackHandle* handle) {
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static char registered = 0;
  if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(&registered);
  return CUDA_SUCCESS;
}
SIMGPU_API cuLogsUnregisterCallback(CUlogsCallbackHandle) { return CUDA_SUCCESS; }
SIMGPU_API cuLogsCurrent(CUlogIterator* iterator, unsigned) {
  if (iterator == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *iterator = 0;
  return CUDA_SUCCESS;
}
SIMGPU_API cuLogsDumpToMemory(CUlogIterator*, char* buffer, size_t* bytes, unsigned) {
  if (buffer == nullptr || bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (*bytes > 0) *buffer = '\0';
  *bytes = 0;
  return CUDA_SUCCESS;
}

// ---- Where memory is: hints, which change nothing

SIMGPU_API cuMemPrefetchBatchAsync(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t, unsigned long long,
                                   CUstream) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
SIMGPU_API cuMemDiscardBatchAsync(CUdeviceptr*, size_t*, size_t, unsigned long long, CUstream) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
SIMGPU_API cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr*, size_t*, size_t, CUmemLocation*, size_t*, size_t,
                                             unsigned long long, CUstream) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}

// ---- Atomics between devices and the host: nothing runs that would use them.

SIMGPU_API cuDeviceGetTexture1DLinearMaxWidth(size_t* elements, CUarray_format, unsigned, CUdevice) {
  SIMGPU_ENTER();
  if (elements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *elements = 268435456;
  return CUDA_SUCCESS;
}
