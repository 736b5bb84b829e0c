#include "tools/simgpu/math/cublas_handle.h"

#include <cuda_runtime_api.h>

#include <memory>

#include "tools/simgpu/math/kernels.h"
#include "tools/simgpu/math/version.h"

namespace {

// Where the profile says nothing: what one handle was seen to take on recent devices. An assumption, not a measurement.
constexpr std::uint64_t kDefaultHandleBytes = 8ULL << 20;

constexpr simgpu::math::Version kVersion = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};

}  // namespace

namespace simgpu::math {

cublasStatus_t FromCuda(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return CUBLAS_STATUS_SUCCESS;
    case cudaErrorMemoryAllocation:
      return CUBLAS_STATUS_ALLOC_FAILED;
    default:
      return CUBLAS_STATUS_EXECUTION_FAILED;
  }
}

}  // namespace simgpu::math

using simgpu::math::FromCuda;

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto context = std::make_unique<cublasContext>();
  const std::uint64_t bytes = simgpu::math::ProfileNumber("cublas.handle_bytes", kDefaultHandleBytes);
  if (bytes != 0) {
    const cudaError_t allocated = cudaMalloc(&context->device_memory, bytes);
    if (allocated == cudaErrorMemoryAllocation) return CUBLAS_STATUS_ALLOC_FAILED;
    if (allocated != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  *handle = context.release();
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const std::unique_ptr<cublasContext> context(handle);
  return FromCuda(cudaFree(context->device_memory));
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int* version) {
  if (version == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *value = kVersion.Part(type);
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasGetCudartVersion() { return CUDART_VERSION; }

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}

// A workspace that the caller lends is only ever used by kernels.
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void*, size_t) {
  return handle == nullptr ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

// What is set has no effect, and can be asked for.
#define SIMGPU_ATTRIBUTE(Name, type, member)                           \
  cublasStatus_t cublasSet##Name(cublasHandle_t handle, type value) {  \
    handle->member = value;                                            \
    return CUBLAS_STATUS_SUCCESS;                                      \
  }                                                                    \
  cublasStatus_t cublasGet##Name(cublasHandle_t handle, type* value) { \
    *value = handle->member;                                           \
    return CUBLAS_STATUS_SUCCESS;                                      \
  }
SIMGPU_ATTRIBUTE(MathMode, cublasMath_t, math_mode)
SIMGPU_ATTRIBUTE(PointerMode_v2, cublasPointerMode_t, pointer_mode)
SIMGPU_ATTRIBUTE(AtomicsMode, cublasAtomicsMode_t, atomics_mode)
SIMGPU_ATTRIBUTE(SmCountTarget, int, sm_count_target)
#undef SIMGPU_ATTRIBUTE

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define SIMGPU_NAME(status) \
  case status:              \
    return #status
    SIMGPU_NAME(CUBLAS_STATUS_SUCCESS);
    SIMGPU_NAME(CUBLAS_STATUS_NOT_INITIALIZED);
    SIMGPU_NAME(CUBLAS_STATUS_ALLOC_FAILED);
    SIMGPU_NAME(CUBLAS_STATUS_INVALID_VALUE);
    SIMGPU_NAME(CUBLAS_STATUS_ARCH_MISMATCH);
    SIMGPU_NAME(CUBLAS_STATUS_MAPPING_ERROR);
    SIMGPU_NAME(CUBLAS_STATUS_EXECUTION_FAILED);
    SIMGPU_NAME(CUBLAS_STATUS_INTERNAL_ERROR);
    SIMGPU_NAME(CUBLAS_STATUS_NOT_SUPPORTED);
#undef SIMGPU_NAME
    default:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
}

const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

}  // extern "C"
