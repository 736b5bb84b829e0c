// The runtime's errors: their translation from the driver's, and the last one of each thread.
#ifndef TOOLS_SIMGPU_RUNTIME_ERROR_H_
#define TOOLS_SIMGPU_RUNTIME_ERROR_H_

#include <cuda.h>
#include <driver_types.h>

namespace simgpu::runtime {

// Since CUDA 10.1 both enumerations share their values; codes that the runtime has no name for become unknown.
cudaError_t FromDriver(CUresult result);

// Returns `error`, and keeps it for cudaGetLastError unless it is success. Every entry point returns through here.
cudaError_t Record(cudaError_t error);

inline cudaError_t Record(CUresult result) { return Record(FromDriver(result)); }

}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_ERROR_H_
