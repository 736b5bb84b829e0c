// cuDNN's handle, as its parts see it.
#ifndef TOOLS_SIMGPU_MATH_CUDNN_HANDLE_H_
#define TOOLS_SIMGPU_MATH_CUDNN_HANDLE_H_

#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

// The header declares this type and leaves it to the library. As in life a handle is used by one thread at a time.
struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace simgpu::math {

// Launches the routine's kernel on the handle's stream.
cudnnStatus_t RunCudnn(cudnnHandle_t handle, const char* routine);

// Bytes of workspace that a routine asks its caller for: the profile's, since only a measurement could tell.
size_t CudnnWorkspaceBytes();

}  // namespace simgpu::math

#endif  // TOOLS_SIMGPU_MATH_CUDNN_HANDLE_H_
