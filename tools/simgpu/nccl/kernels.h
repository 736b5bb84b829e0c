// The kernels that genuine NCCL would launch, by their names.
#ifndef TOOLS_SIMGPU_NCCL_KERNELS_H_
#define TOOLS_SIMGPU_NCCL_KERNELS_H_

#include <nccl.h>

#include "tools/simgpu/nccl/operation.h"

namespace simgpu::nccl {

// Launches the operation's kernel on its stream (in a stream capture: records it). The communicator's context must be
// current.
ncclResult_t LaunchKernel(const Operation& operation);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_KERNELS_H_
