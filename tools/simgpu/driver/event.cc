// Events: points in a stream, and the edges of captures between streams.
#include "tools/simgpu/driver/event.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <unordered_set>
#include <utility>

namespace simgpu {
namespace {

constexpr char kSharedEvent[] = "simgpu event";  // what a CUipcEventHandle holds

std::unordered_set<Event*>& Known() {
  static auto* known = new std::unordered_set<Event*>;
  return *known;
}

Event* EventOf(CUevent handle) {
  auto* event = reinterpret_cast<Event*>(handle);
  return Known().count(event) != 0 ? event : nullptr;
}

std::int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

bool HasCompleted(const Event& event) { return !event.recorded || IsDone(event.count, *event.synchronized); }

}  // namespace

bool IsEvent(CUevent handle) { return EventOf(handle) != nullptr; }

void RecordNow(CUevent handle, std::shared_ptr<std::uint64_t> synchronized) {
  Event* event = EventOf(handle);
  if (event == nullptr) return;  // destroyed since a graph that records it was made
  event->recorded = true;
  event->capture.reset();
  event->frontier.clear();
  event->count = OperationCount();
  event->synchronized = std::move(synchronized);
  event->vain_queries = {};
  event->time_ns = Now();
}

}  // namespace simgpu

using simgpu::Event;
using simgpu::EventOf;
using simgpu::Guard;
using simgpu::kSharedEvent;
using simgpu::Stream;

SIMGPU_API cuEventCreate(CUevent* handle, unsigned flags) {
  simgpu::Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (handle == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CU_EVENT_INTERPROCESS) != 0 && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  auto* event = new Event{.context = context, .flags = flags};
  simgpu::Known().insert(event);
  *handle = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventDestroy(CUevent handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Event* event = EventOf(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  simgpu::Known().erase(event);
  delete event;
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned flags) {
  SIMGPU_ENTER();
  const Guard guard;
  Event* event = EventOf(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(stream_handle, &stream));
  if (stream->capture == nullptr) {
    simgpu::RecordNow(handle, stream->synchronized);
    return CUDA_SUCCESS;
  }
  if ((flags & CU_EVENT_RECORD_EXTERNAL) != 0) {
    // A node that records the event at each launch, instead of an edge of the capture.
    simgpu::CaptureNode(stream, {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                 .effect =
                                     [handle, done = stream->synchronized] {
                                       const Guard inner;
                                       simgpu::RecordNow(handle, done);
                                     }})
        ->event = handle;
    return CUDA_SUCCESS;
  }
  event->recorded = true;
  event->count = simgpu::OperationCount();
  event->synchronized = stream->synchronized;
  event->capture = stream->capture;
  event->frontier = stream->frontier;
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventRecord(CUevent handle, CUstream stream) {
  return cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

SIMGPU_API cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags) {
  SIMGPU_ENTER();
  const Guard guard;
  Event* event = EventOf(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(stream_handle, &stream));
  if ((flags & CU_EVENT_WAIT_EXTERNAL) != 0) {
    if (stream->capture == nullptr) return CUDA_ERROR_ILLEGAL_STATE;
    simgpu::CaptureNode(stream, {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT})->event = handle;
    return CUDA_SUCCESS;
  }
  const std::shared_ptr<simgpu::Capture> capture = event->capture.lock();
  if (capture == nullptr) return CUDA_SUCCESS;  // nothing runs that would have to wait
  if (stream->capture != nullptr && stream->capture != capture) {
    stream->capture->invalid = capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  // The stream joins the capture, behind what the event stands for.
  stream->capture = capture;
  for (simgpu::Node* node : event->frontier) {
    bool known = false;
    for (const simgpu::Node* own : stream->frontier) known = known || own == node;
    if (!known) stream->frontier.push_back(node);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventQuery(CUevent handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Event* event = EventOf(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!event->capture.expired()) return CUDA_ERROR_CAPTURED_EVENT;
  const bool done = !event->recorded || simgpu::Poll(event->count, *event->synchronized, event->vain_queries);
  return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIMGPU_API cuEventSynchronize(CUevent handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Event* event = EventOf(handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!event->capture.expired()) return CUDA_ERROR_CAPTURED_EVENT;
  if (event->recorded) *event->synchronized = std::max(*event->synchronized, event->count);
  simgpu::TrimPoolsAtSynchronization(event->context->device);
  return CUDA_SUCCESS;
}

SIMGPU_API cuEventElapsedTime(float* milliseconds, CUevent start_handle, CUevent end_handle) {  // v2
  SIMGPU_ENTER();
  if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Event* start = EventOf(start_handle);
  const Event* end = EventOf(end_handle);
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
  if (!simgpu::HasCompleted(*start) || !simgpu::HasCompleted(*end)) return CUDA_ERROR_NOT_READY;
  // The time between the two calls on the host, and never nothing: callers divide by it.
  const std::int64_t nanoseconds = end->time_ns - start->time_ns;
  *milliseconds = static_cast<float>(nanoseconds == 0 ? 500 : nanoseconds) * 1e-6f;
  return CUDA_SUCCESS;
}

// ---- Events of another process: work there is done when it is issued, so its events are always complete.

SIMGPU_API cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event_handle) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Event* event = EventOf(event_handle);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((event->flags & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = {};
  std::memcpy(handle->reserved, kSharedEvent, sizeof(kSharedEvent));
  return CUDA_SUCCESS;
}

SIMGPU_API cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  if (std::memcmp(handle.reserved, kSharedEvent, sizeof(kSharedEvent)) != 0) return CUDA_ERROR_INVALID_VALUE;
  return cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

#undef cuEventElapsedTime
SIMGPU_API cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
