// The way of an operation that is given to a stream.
#include "tools/simgpu/driver/activity.h"
#include "tools/simgpu/driver/graph.h"

namespace simgpu {

Node* CaptureNode(Stream* stream, Operation operation) {
  Node* node = AddNode(stream->capture->graph, stream->frontier, std::move(operation));
  stream->frontier.assign(1, node);
  return node;
}

CUresult Submit(CUstream handle, Operation operation) {
  SIMGPU_ENTER();
  const bool told = HasActivitySubscriber();
  Activity place = {};
  {
    const Guard guard;
    Stream* stream = nullptr;
    SIMGPU_RETURN_IF_ERROR(FindStream(handle, &stream));
    if (stream->capture != nullptr) {
      if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      CaptureNode(stream, std::move(operation));
      return CUDA_SUCCESS;
    }
    CountOperation(stream);
    if (told) place = PlaceOf(*stream);
  }
  if (operation.effect) operation.effect();
  if (told) {
    place.correlation = NextCorrelation();
    TellActivity(operation, place);
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu

SIMGPU_API cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Submit(stream, {.type = CU_GRAPH_NODE_TYPE_HOST, .effect = [=] { function(user); }});
}

SIMGPU_API cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* user, unsigned flags) {
  SIMGPU_ENTER();
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  {
    const simgpu::Guard guard;
    simgpu::Stream* found = nullptr;
    SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(stream, &found));
    if (found->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return simgpu::Submit(stream,
                        {.type = CU_GRAPH_NODE_TYPE_HOST, .effect = [=] { callback(stream, CUDA_SUCCESS, user); }});
}
