// Nodes of graphs, added and changed one by one.
#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/array.h"
#include "tools/simgpu/runtime/forward.h"
#include "tools/simgpu/runtime/graph_params.h"

using namespace simgpu::runtime;

static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));

extern "C" {

cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* params) {
  CUgraphNodeParams driver_params;
  const cudaError_t translated = DriverNode(params, &driver_params);
  if (translated != cudaSuccess) return Record(translated);
  const cudaError_t added = Forward<&Driver::cuGraphAddNode>(node, graph, dependencies, edges, count, &driver_params);
  if (added == cudaSuccess) CopyOutputs(driver_params, params);
  return added;
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* params) {
  CUgraphNodeParams driver_params;
  const cudaError_t translated = DriverNode(params, &driver_params);
  return translated != cudaSuccess ? Record(translated) : Forward<&Driver::cuGraphNodeSetParams>(node, &driver_params);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* params) {
  CUgraphNodeParams driver_params;
  const cudaError_t translated = DriverNode(params, &driver_params);
  return translated != cudaSuccess ? Record(translated)
                                   : Forward<&Driver::cuGraphExecNodeSetParams>(exec, node, &driver_params);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS driver_params;
  const cudaError_t translated = DriverKernelNode(params, &driver_params);
  return translated != cudaSuccess
             ? Record(translated)
             : Forward<&Driver::cuGraphAddKernelNode>(node, graph, dependencies, count, &driver_params);
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS driver_params;
  const cudaError_t translated = DriverKernelNode(params, &driver_params);
  return translated != cudaSuccess ? Record(translated)
                                   : Forward<&Driver::cuGraphKernelNodeSetParams>(node, &driver_params);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS driver_params;
  const cudaError_t translated = DriverKernelNode(params, &driver_params);
  return translated != cudaSuccess ? Record(translated)
                                   : Forward<&Driver::cuGraphExecKernelNodeSetParams>(exec, node, &driver_params);
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t destination, cudaGraphNode_t source) {
  return Forward<&Driver::cuGraphKernelNodeCopyAttributes>(destination, source);
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            cudaLaunchAttributeValue* value) {
  return Forward<&Driver::cuGraphKernelNodeGetAttribute>(node, attribute, value);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attribute,
                                            const cudaLaunchAttributeValue* value) {
  return Forward<&Driver::cuGraphKernelNodeSetAttribute>(node, attribute, value);
}

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemcpy3DParms* params) {
  if (params == nullptr) return Record(cudaErrorInvalidValue);
  const CUcontext context = CurrentContext();
  const CUDA_MEMCPY3D copy = DriverCopy(*params);
  return Forward<&Driver::cuGraphAddMemcpyNode>(node, graph, dependencies, count, &copy, context);
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, void* destination, const void* source, size_t bytes,
                                     cudaMemcpyKind) {
  const CUDA_MEMCPY3D copy = LinearCopy(destination, source, bytes);
  return Forward<&Driver::cuGraphAddMemcpyNode>(node, graph, dependencies, count, &copy, CurrentContext());
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* params) {
  if (params == nullptr) return Record(cudaErrorInvalidValue);
  const CUDA_MEMCPY3D copy = DriverCopy(*params);
  return Forward<&Driver::cuGraphMemcpyNodeSetParams>(node, &copy);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* destination, const void* source, size_t bytes,
                                           cudaMemcpyKind) {
  const CUDA_MEMCPY3D copy = LinearCopy(destination, source, bytes);
  return Forward<&Driver::cuGraphMemcpyNodeSetParams>(node, &copy);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* params) {
  if (params == nullptr) return Record(cudaErrorInvalidValue);
  const CUDA_MEMCPY3D copy = DriverCopy(*params);
  return Forward<&Driver::cuGraphExecMemcpyNodeSetParams>(exec, node, &copy, CurrentContext());
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void* destination,
                                               const void* source, size_t bytes, cudaMemcpyKind) {
  const CUDA_MEMCPY3D copy = LinearCopy(destination, source, bytes);
  return Forward<&Driver::cuGraphExecMemcpyNodeSetParams>(exec, node, &copy, CurrentContext());
}

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const cudaMemsetParams* params) {
  return Forward<&Driver::cuGraphAddMemsetNode>(node, graph, dependencies, count, params, CurrentContext());
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* params) {
  return Forward<&Driver::cuGraphMemsetNodeGetParams>(node, params);
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* params) {
  return Forward<&Driver::cuGraphMemsetNodeSetParams>(node, params);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const cudaMemsetParams* params) {
  return Forward<&Driver::cuGraphExecMemsetNodeSetParams>(exec, node, params, CurrentContext());
}

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 size_t count, const cudaHostNodeParams* params) {
  return Forward<&Driver::cuGraphAddHostNode>(node, graph, dependencies, count, params);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* params) {
  return Forward<&Driver::cuGraphHostNodeGetParams>(node, params);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* params) {
  return Forward<&Driver::cuGraphHostNodeSetParams>(node, params);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const cudaHostNodeParams* params) {
  return Forward<&Driver::cuGraphExecHostNodeSetParams>(exec, node, params);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       size_t count, cudaGraph_t child) {
  return Forward<&Driver::cuGraphAddChildGraphNode>(node, graph, dependencies, count, child);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* child) {
  return Forward<&Driver::cuGraphChildGraphNodeGetGraph>(node, child);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child) {
  return Forward<&Driver::cuGraphExecChildGraphNodeSetParams>(exec, node, child);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t count) {
  return Forward<&Driver::cuGraphAddEmptyNode>(node, graph, dependencies, count);
}

#define SIMGPU_EVENT_NODES(Kind)                                                                                      \
  cudaError_t cudaGraphAddEvent##Kind##Node(cudaGraphNode_t* node, cudaGraph_t graph,                                 \
                                            const cudaGraphNode_t* dependencies, size_t count, cudaEvent_t event) {   \
    return Forward<&Driver::cuGraphAddEvent##Kind##Node>(node, graph, dependencies, count, event);                    \
  }                                                                                                                   \
  cudaError_t cudaGraphEvent##Kind##NodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {                          \
    return Forward<&Driver::cuGraphEvent##Kind##NodeGetEvent>(node, event);                                           \
  }                                                                                                                   \
  cudaError_t cudaGraphEvent##Kind##NodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {                           \
    return Forward<&Driver::cuGraphEvent##Kind##NodeSetEvent>(node, event);                                           \
  }                                                                                                                   \
  cudaError_t cudaGraphExecEvent##Kind##NodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event) { \
    return Forward<&Driver::cuGraphExecEvent##Kind##NodeSetEvent>(exec, node, event);                                 \
  }
SIMGPU_EVENT_NODES(Record)
SIMGPU_EVENT_NODES(Wait)
#undef SIMGPU_EVENT_NODES

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, cudaMemAllocNodeParams* params) {
  return Forward<&Driver::cuGraphAddMemAllocNode>(node, graph, dependencies, count, params);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node, cudaMemAllocNodeParams* params) {
  return Forward<&Driver::cuGraphMemAllocNodeGetParams>(node, params);
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                    size_t count, void* pointer) {
  return Forward<&Driver::cuGraphAddMemFreeNode>(node, graph, dependencies, count, pointer);
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void* pointer) {
  return Forward<&Driver::cuGraphMemFreeNodeGetParams>(node, pointer);
}

}  // extern "C"
