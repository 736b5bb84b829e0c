// Capture of streams into graphs, and launches of the graphs.
#include "tools/simgpu/runtime/stream_api.h"

using namespace simgpu::runtime;

static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));
static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return ForwardStream<&StreamFunctions::cuStreamBeginCapture>(stream, mode);
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                          const cudaGraphEdgeData* edges, size_t count, cudaStreamCaptureMode mode) {
  return ForwardStream<&StreamFunctions::cuStreamBeginCaptureToGraph>(stream, graph, dependencies, edges, count, mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return ForwardStream<&StreamFunctions::cuStreamEndCapture>(stream, graph);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return ForwardStream<&StreamFunctions::cuStreamIsCapturing>(stream, status);
}

cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                                     cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return ForwardStream<&StreamFunctions::cuStreamGetCaptureInfo>(stream, status, id, graph, dependencies, edges, count);
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* dependencies,
                                                const cudaGraphEdgeData* edges, size_t count, unsigned int flags) {
  return ForwardStream<&StreamFunctions::cuStreamUpdateCaptureDependencies>(stream, dependencies, edges, count, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* exec, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
  return ForwardStream<&StreamFunctions::cuGraphInstantiateWithParams>(exec, graph, params);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuGraphUpload>(exec, stream);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuGraphLaunch>(exec, stream);
}

}  // extern "C"
