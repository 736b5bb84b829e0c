#include "tools/simgpu/runtime/graph_params.h"

#include <cstring>

#include "tools/simgpu/runtime/array.h"
#include "tools/simgpu/runtime/forward.h"
#include "tools/simgpu/runtime/registry.h"

namespace simgpu::runtime {

static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));

cudaError_t DriverKernelNode(const cudaKernelNodeParams* params, CUDA_KERNEL_NODE_PARAMS* result) {
  if (params == nullptr) return cudaErrorInvalidValue;
  *result = {};
  const cudaError_t found = Registry::Get().FindKernel(params->func, &result->kern);
  result->gridDimX = params->gridDim.x;
  result->gridDimY = params->gridDim.y;
  result->gridDimZ = params->gridDim.z;
  result->blockDimX = params->blockDim.x;
  result->blockDimY = params->blockDim.y;
  result->blockDimZ = params->blockDim.z;
  result->sharedMemBytes = params->sharedMemBytes;
  result->kernelParams = params->kernelParams;
  result->extra = params->extra;
  return found;
}

cudaError_t DriverNode(const cudaGraphNodeParams* params, CUgraphNodeParams* result) {
  if (params == nullptr) return cudaErrorInvalidValue;
  std::memcpy(static_cast<void*>(result), params, sizeof(*result));
  switch (params->type) {
    case cudaGraphNodeTypeKernel:
      result->kernel.func = nullptr;
      result->kernel.ctx = nullptr;
      return Registry::Get().FindKernel(params->kernel.func, &result->kernel.kern);
    case cudaGraphNodeTypeMemcpy:
      std::memset(&result->memcpy, 0, sizeof(result->memcpy));
      result->memcpy.flags = params->memcpy.flags;
      result->memcpy.copyCtx = CurrentContext();
      result->memcpy.copyParams = DriverCopy(params->memcpy.copyParams);
      return cudaSuccess;
    case cudaGraphNodeTypeMemset:
      result->memset.ctx = CurrentContext();
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      result->conditional.ctx = CurrentContext();
      return cudaSuccess;
    default:
      return cudaSuccess;
  }
}

void CopyOutputs(const CUgraphNodeParams& result, cudaGraphNodeParams* params) {
  if (params->type == cudaGraphNodeTypeConditional) {
    params->conditional.phGraph_out = reinterpret_cast<cudaGraph_t*>(result.conditional.phGraph_out);
  } else if (params->type == cudaGraphNodeTypeMemAlloc) {
    params->alloc.dptr = reinterpret_cast<void*>(result.alloc.dptr);
  }
}

CUDA_MEMCPY3D LinearCopy(void* destination, const void* source, size_t count) {
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = {const_cast<void*>(source), count, count, 1};
  copy.dstPtr = {destination, count, count, 1};
  copy.extent = {count, 1, 1};
  return DriverCopy(copy);
}

CUcontext CurrentContext() {
  CUcontext context = nullptr;
  EnsureContext();
  CallDriver(GetDriver().cuCtxGetCurrent, &context);
  return context;
}

}  // namespace simgpu::runtime
