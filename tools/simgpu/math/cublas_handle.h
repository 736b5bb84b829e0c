// cuBLAS's handle, as its own functions and its routines see it.
#ifndef TOOLS_SIMGPU_MATH_CUBLAS_HANDLE_H_
#define TOOLS_SIMGPU_MATH_CUBLAS_HANDLE_H_

#pragma GCC visibility push(default)
#include <cublas_v2.h>
#pragma GCC visibility pop

// The header declares this type and leaves it to the library. As in life a handle is used by one thread at a time.
struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
  int sm_count_target = 0;
  void* device_memory = nullptr;  // the library's own, held from creation to destruction
};

namespace simgpu::math {

// Launches the routine's kernel on the handle's stream.
cublasStatus_t RunCublas(cublasHandle_t handle, const char* routine);

cublasStatus_t FromCuda(cudaError_t error);

}  // namespace simgpu::math

#endif  // TOOLS_SIMGPU_MATH_CUBLAS_HANDLE_H_
