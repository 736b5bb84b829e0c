// Graphs as wholes: their making, their structure, and the executables made from them.
#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

using namespace simgpu::runtime;

static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
  return Forward<&Driver::cuGraphCreate>(graph, flags);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return Forward<&Driver::cuGraphDestroy>(graph); }

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  return Forward<&Driver::cuGraphClone>(clone, graph);
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char* path, unsigned int flags) {
  return Forward<&Driver::cuGraphDebugDotPrint>(graph, path, flags);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone) {
  return Forward<&Driver::cuGraphNodeFindInClone>(node, original, clone);
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  return Forward<&Driver::cuGraphNodeGetType>(node, type);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return Forward<&Driver::cuGraphGetNodes>(graph, nodes, count);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return Forward<&Driver::cuGraphGetRootNodes>(graph, nodes, count);
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
  return Forward<&Driver::cuGraphGetEdges>(graph, from, to, edges, count);
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
                                         size_t* count) {
  return Forward<&Driver::cuGraphNodeGetDependencies>(node, dependencies, edges, count);
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges,
                                           size_t* count) {
  return Forward<&Driver::cuGraphNodeGetDependentNodes>(node, dependents, edges, count);
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) {
  return Forward<&Driver::cuGraphAddDependencies>(graph, from, to, edges, count);
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edges, size_t count) {
  return Forward<&Driver::cuGraphRemoveDependencies>(graph, from, to, edges, count);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) { return Forward<&Driver::cuGraphDestroyNode>(node); }

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return Forward<&Driver::cuGraphInstantiateWithFlags>(exec, graph, flags);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(exec, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long* flags) {
  return Forward<&Driver::cuGraphExecGetFlags>(exec, flags);
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
  return Forward<&Driver::cuGraphExecUpdate>(exec, graph, info);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return Forward<&Driver::cuGraphExecDestroy>(exec); }

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled) {
  return Forward<&Driver::cuGraphNodeSetEnabled>(exec, node, enabled);
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int* enabled) {
  return Forward<&Driver::cuGraphNodeGetEnabled>(exec, node, enabled);
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                                             unsigned int default_value, unsigned int flags) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  CUcontext context = nullptr;
  const cudaError_t current = CallDriver(GetDriver().cuCtxGetCurrent, &context);
  if (current != cudaSuccess) return Record(current);
  return Forward<&Driver::cuGraphConditionalHandleCreate>(handle, graph, context, default_value, flags);
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t* object, void* pointer, cudaHostFn_t destroy, unsigned int references,
                                 unsigned int flags) {
  return Forward<&Driver::cuUserObjectCreate>(object, pointer, destroy, references, flags);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count) {
  return Forward<&Driver::cuUserObjectRetain>(object, count);
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count) {
  return Forward<&Driver::cuUserObjectRelease>(object, count);
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags) {
  return Forward<&Driver::cuGraphRetainUserObject>(graph, object, count, flags);
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count) {
  return Forward<&Driver::cuGraphReleaseUserObject>(graph, object, count);
}

cudaError_t cudaDeviceGraphMemTrim(int device) { return ForwardWithoutContext<&Driver::cuDeviceGraphMemTrim>(device); }

cudaError_t cudaDeviceGetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return ForwardWithoutContext<&Driver::cuDeviceGetGraphMemAttribute>(device, attribute, value);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, cudaGraphMemAttributeType attribute, void* value) {
  return ForwardWithoutContext<&Driver::cuDeviceSetGraphMemAttribute>(device, attribute, value);
}

}  // extern "C"
