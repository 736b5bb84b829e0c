// Stream capture: streams that build a graph instead of working.
//
// A capture begins on one stream. Other streams join it by waiting for an event that was recorded in it, and must have
// been joined back when it ends. Each stream keeps what its next node depends on.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "tools/simgpu/driver/graph.h"
#include "tools/simgpu/driver/stream.h"

namespace simgpu {
namespace {

thread_local constinit CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult Begin(CUstream handle, CUstreamCaptureMode mode, Graph* graph, std::vector<Node*> dependencies) {
  if (mode != CU_STREAM_CAPTURE_MODE_GLOBAL && mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
      mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(FindStream(handle, &stream));
  if (stream->capture != nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  static std::uint64_t last_id = 0;
  const bool owns_graph = graph == nullptr;
  stream->capture = std::make_shared<Capture>(Capture{.id = ++last_id,
                                                      .graph = owns_graph ? NewGraph(stream->context) : graph,
                                                      .origin = stream,
                                                      .owns_graph = owns_graph});
  stream->frontier = std::move(dependencies);
  return CUDA_SUCCESS;
}

// Everything that the nodes depend on, themselves included.
std::unordered_set<const Node*> Ancestors(const std::vector<Node*>& nodes) {
  std::unordered_set<const Node*> found;
  std::vector<const Node*> open(nodes.begin(), nodes.end());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (!found.insert(node).second) continue;
    open.insert(open.end(), node->dependencies.begin(), node->dependencies.end());
  }
  return found;
}

CUstreamCaptureStatus StatusOf(const Stream& stream) {
  if (stream.capture == nullptr) return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream.capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace
}  // namespace simgpu

using simgpu::Guard;
using simgpu::Node;
using simgpu::Stream;

SIMGPU_API cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {  // v2
  SIMGPU_ENTER();
  const Guard guard;
  return simgpu::Begin(stream, mode, nullptr, {});
}

#undef cuStreamBeginCapture
SIMGPU_API cuStreamBeginCapture(CUstream stream) {
  return cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

SIMGPU_API cuStreamBeginCaptureToGraph(CUstream stream, CUgraph handle, const CUgraphNode* dependencies,
                                       const CUgraphEdgeData*, size_t count, CUstreamCaptureMode mode) {
  SIMGPU_ENTER();
  const Guard guard;
  simgpu::Graph* graph = simgpu::GraphOf(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* first = reinterpret_cast<Node* const*>(dependencies);
  return simgpu::Begin(stream, mode, graph, {first, first + count});
}

SIMGPU_API cuStreamEndCapture(CUstream handle, CUgraph* graph) {
  SIMGPU_ENTER();
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<simgpu::UserObject*> destroyed;
  CUresult result = CUDA_SUCCESS;
  {
    const Guard guard;
    *graph = nullptr;
    Stream* stream = nullptr;
    SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
    const std::shared_ptr<simgpu::Capture> capture = stream->capture;
    if (capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    if (capture->origin != stream) {
      capture->invalid = true;
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }
    const auto joined = simgpu::Ancestors(stream->frontier);
    for (Stream* other : simgpu::StreamsIn(*capture)) {
      for (const Node* node : other->frontier) {
        if (joined.count(node) == 0) result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
      }
      other->capture.reset();
      other->frontier.clear();
    }
    if (capture->invalid) result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (result == CUDA_SUCCESS) {
      *graph = reinterpret_cast<CUgraph>(capture->graph);
    } else if (capture->owns_graph) {
      simgpu::DeleteGraph(capture->graph, &destroyed);
    }
  }
  simgpu::RunDestroyed(destroyed);
  return result;
}

SIMGPU_API cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus* status) {
  SIMGPU_ENTER();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
  *status = simgpu::StatusOf(*stream);
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                  const CUgraphNode** dependencies, const CUgraphEdgeData** edges,
                                  size_t* count) {  // v3
  SIMGPU_ENTER();
  if (status == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
  *status = simgpu::StatusOf(*stream);
  const bool active = *status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id != nullptr) *id = active ? stream->capture->id : 0;
  if (graph != nullptr) *graph = active ? reinterpret_cast<CUgraph>(stream->capture->graph) : nullptr;
  if (dependencies != nullptr) {
    *dependencies = active ? reinterpret_cast<const CUgraphNode*>(stream->frontier.data()) : nullptr;
  }
  if (edges != nullptr) *edges = nullptr;  // all edges are plain ones
  if (count != nullptr) *count = active ? stream->frontier.size() : 0;
  return CUDA_SUCCESS;
}

#undef cuStreamGetCaptureInfo
SIMGPU_API cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

SIMGPU_API cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* graph,
                                     const CUgraphNode** dependencies, size_t* count) {
  return cuStreamGetCaptureInfo_v3(stream, status, id, graph, dependencies, nullptr, count);
}

SIMGPU_API cuStreamUpdateCaptureDependencies(CUstream handle, CUgraphNode* dependencies, const CUgraphEdgeData*,
                                             size_t count, unsigned flags) {  // v2
  SIMGPU_ENTER();
  if (count > 0 && dependencies == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
  if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
    stream->frontier.clear();
  } else if (flags != CU_STREAM_ADD_CAPTURE_DEPENDENCIES) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) stream->frontier.push_back(reinterpret_cast<Node*>(dependencies[i]));
  return CUDA_SUCCESS;
}

#undef cuStreamUpdateCaptureDependencies
SIMGPU_API cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* dependencies, size_t count, unsigned flags) {
  return cuStreamUpdateCaptureDependencies_v2(stream, dependencies, nullptr, count, flags);
}

SIMGPU_API cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  SIMGPU_ENTER();
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, simgpu::thread_mode);  // kept, but no call is refused because of it
  return CUDA_SUCCESS;
}
