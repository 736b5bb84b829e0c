// Parameters of graph nodes in the driver's terms. Kernels are named by host functions here and by handles there, and
// copies count in other units; the layouts of all other nodes are the same in both APIs.
#ifndef TOOLS_SIMGPU_RUNTIME_GRAPH_PARAMS_H_
#define TOOLS_SIMGPU_RUNTIME_GRAPH_PARAMS_H_

#include <cuda.h>
#include <driver_types.h>

namespace simgpu::runtime {

cudaError_t DriverKernelNode(const cudaKernelNodeParams* params, CUDA_KERNEL_NODE_PARAMS* result);

// Parameters of any node. `conditional.phGraph_out`, `alloc.dptr` and `alloc.poolProps` are written by the driver:
// CopyOutputs hands them back after the call.
cudaError_t DriverNode(const cudaGraphNodeParams* params, CUgraphNodeParams* result);
void CopyOutputs(const CUgraphNodeParams& result, cudaGraphNodeParams* params);

// A linear copy as a node's parameters.
CUDA_MEMCPY3D LinearCopy(void* destination, const void* source, size_t count);

// The thread's current context, which nodes that run code or copies are bound to.
CUcontext CurrentContext();

}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_GRAPH_PARAMS_H_
