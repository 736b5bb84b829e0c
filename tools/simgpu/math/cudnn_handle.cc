#include "tools/simgpu/math/cudnn_handle.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <string>

#include "tools/simgpu/math/kernels.h"
#include "tools/simgpu/math/version.h"

namespace {

constexpr simgpu::math::Version kVersion = {SIMGPU_CUDNN_MAJOR, SIMGPU_CUDNN_MINOR, SIMGPU_CUDNN_PATCH};

}  // namespace

namespace simgpu::math {

cudnnStatus_t RunCudnn(cudnnHandle_t handle, const char* routine) {
  if (handle == nullptr) return CUDNN_STATUS_NOT_INITIALIZED;
  return LaunchKernel(std::string("simgpu_") + routine + "_kernel", handle->stream) == cudaSuccess
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

size_t CudnnWorkspaceBytes() { return ProfileNumber("cudnn.workspace_bytes", 0); }

}  // namespace simgpu::math

extern "C" {

// The version that the program was built for: a framework refuses a library that is older.
size_t cudnnGetVersion() { return SIMGPU_CUDNN_MAJOR * 10000 + SIMGPU_CUDNN_MINOR * 100 + SIMGPU_CUDNN_PATCH; }

size_t cudnnGetMaxDeviceVersion() { return CUDNN_MAX_DEVICE_VERSION; }

size_t cudnnGetCudartVersion() { return CUDART_VERSION; }

cudnnStatus_t cudnnGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *value = kVersion.Part(type);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  // The genuine one looks at the device here, which makes it current.
  if (cudaFree(nullptr) != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
      return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_INTERNAL_ERROR";
  }
}

void cudnnGetLastErrorString(char* message, size_t size) {
  if (size != 0) std::snprintf(message, size, "no message: this cuDNN is simulated");
}

}  // extern "C"
