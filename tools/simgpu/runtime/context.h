// The current device. As in the genuine runtime it is the driver's current context of the thread, so the copies of the
// runtime that libraries embed all see the device that the program selected.
#ifndef TOOLS_SIMGPU_RUNTIME_CONTEXT_H_
#define TOOLS_SIMGPU_RUNTIME_CONTEXT_H_

#include <cuda.h>
#include <driver_types.h>

namespace simgpu::runtime {

// Makes sure that the thread has a current context: device 0's primary context unless another one was selected.
cudaError_t EnsureContext();

// The thread's device; does not create a context.
cudaError_t CurrentDevice(int* device);

// Retains the device's primary context, once in the life of this copy of the runtime, without making it current.
cudaError_t RetainPrimaryContext(int device, CUcontext* context);

}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_CONTEXT_H_
