#include "tools/simgpu/driver/stream.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <new>
#include <set>

#include "tools/simgpu/driver/graph.h"
#include "tools/simgpu/driver/heap.h"
#include "tools/simgpu/driver/pool.h"

namespace simgpu {
namespace {

// More than a busy program asks about one event between two operations (PyTorch's allocator asks once per allocation),
// few enough for those that sleep between their questions (the watchdog of its process groups: a tenth of a second).
constexpr int kQueriesUntilDone = 8;

std::uint64_t operations = 0;

std::set<Stream*>& Known() {
  static auto* known = new std::set<Stream*>;
  return *known;
}

// Streams lie side by side, the lowest free place first, so that the order of their handles is that in which they were
// made. PyTorch keeps its cached segments by the handles of their streams, and gives them back in that order: with
// handles out of the program's heap, two runs of a job would do so in two orders.
ChunkHeap& Places() {
  static auto* places = new ChunkHeap;
  return *places;
}

constexpr std::size_t kPlaceBytes = (sizeof(Stream) + 63) / 64 * 64;
constexpr std::size_t kChunkBytes = 4096 * kPlaceBytes;

Stream* NewPlace() {
  std::uintptr_t place = Places().Allocate(kPlaceBytes);
  if (place == 0) {
    // Below device memory, and so the same in every run; elsewhere, if something is there.
    void* const wanted = reinterpret_cast<void*>(0x1f0000000000 + Places().total_bytes());
    void* const chunk = mmap(wanted, kChunkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) throw std::bad_alloc();
    Places().AddChunk({reinterpret_cast<std::uintptr_t>(chunk), kChunkBytes});
    place = Places().Allocate(kPlaceBytes);
  }
  return reinterpret_cast<Stream*>(place);
}

std::uint64_t ThreadId() {
  static thread_local std::uint64_t id = 0;
  if (id == 0) id = static_cast<std::uint64_t>(syscall(SYS_gettid));
  return id;
}

void Forget(Stream* stream) {
  Known().erase(stream);
  std::destroy_at(stream);
  Places().Free(reinterpret_cast<std::uintptr_t>(stream), kPlaceBytes);
}

// In a capture, a stream has no "done" to wait for or ask about: the capture becomes invalid, as in life.
CUresult RefuseCapturing(Stream* stream) {
  if (stream->capture == nullptr) return CUDA_SUCCESS;
  stream->capture->invalid = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult Create(CUstream* handle, unsigned flags, int priority) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(RequireContext(&context));
  if (handle == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Guard guard;
  *handle = ToHandle(NewStream(context, flags, std::clamp(priority, kGreatestPriority, 0)));
  return CUDA_SUCCESS;
}

}  // namespace

Stream* NewStream(Context* context, unsigned flags, int priority) {
  static std::uint32_t last_id = 6;  // the first stream that a program makes has id 13 or so in life; 7 here
  auto* stream = new (NewPlace()) Stream{.context = context, .flags = flags, .priority = priority, .id = ++last_id};
  *stream->synchronized = operations;
  Known().insert(stream);
  return stream;
}

void DestroyStreamsOf(const Context* context) {
  std::vector<Stream*> gone;
  std::copy_if(Known().begin(), Known().end(), std::back_inserter(gone),
               [context](const Stream* stream) { return stream->context == context; });
  std::for_each(gone.begin(), gone.end(), Forget);
}

CUresult FindStream(CUstream handle, Stream** stream) {
  if (handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    *stream = reinterpret_cast<Stream*>(handle);
    return Known().count(*stream) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  }
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(RequireContext(&context));
  if (handle != CU_STREAM_PER_THREAD) {
    *stream = context->legacy_stream;
    return CUDA_SUCCESS;
  }
  Stream*& own = context->thread_streams[ThreadId()];
  if (own == nullptr) own = NewStream(context, CU_STREAM_DEFAULT, 0);
  *stream = own;
  return CUDA_SUCCESS;
}

std::vector<Stream*> StreamsIn(const Capture& capture) {
  std::vector<Stream*> streams;
  std::copy_if(Known().begin(), Known().end(), std::back_inserter(streams),
               [&capture](const Stream* stream) { return stream->capture.get() == &capture; });
  return streams;
}

bool IsDone(std::uint64_t count, std::uint64_t synchronized) {
  return count <= synchronized || operations - count >= GetOptions().event_lag;
}

bool Poll(std::uint64_t count, std::uint64_t& synchronized, VainQueries& vain) {
  if (IsDone(count, synchronized)) return true;
  if (vain.operations != operations) vain = {.operations = operations};
  if (++vain.count < kQueriesUntilDone) return false;
  synchronized = std::max(synchronized, count);
  return true;
}

std::uint64_t OperationCount() { return operations; }

void CountOperation(Stream* stream) { stream->last_work = ++operations; }

void SynchronizeStream(Stream* stream) {
  *stream->synchronized = operations;
  TrimPoolsAtSynchronization(stream->context->device);
}

CUresult SynchronizeContext(Context* context) {
  for (Stream* stream : Known()) {
    if (stream->context != context) continue;
    SIMGPU_RETURN_IF_ERROR(RefuseCapturing(stream));
    *stream->synchronized = operations;
  }
  TrimPoolsAtSynchronization(context->device);
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using simgpu::Guard;
using simgpu::Stream;

SIMGPU_API cuStreamCreate(CUstream* handle, unsigned flags) { return simgpu::Create(handle, flags, 0); }

SIMGPU_API cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  return simgpu::Create(handle, flags, priority);
}

SIMGPU_API cuStreamDestroy(CUstream handle) {
  SIMGPU_ENTER();
  if (handle == nullptr || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const Guard guard;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
  if (stream->capture != nullptr) stream->capture->invalid = true;
  simgpu::Forget(stream);
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamQuery(CUstream handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
  SIMGPU_RETURN_IF_ERROR(simgpu::RefuseCapturing(stream));
  const bool done = simgpu::Poll(stream->last_work, *stream->synchronized, stream->vain_queries);
  return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIMGPU_API cuStreamSynchronize(CUstream handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
  SIMGPU_RETURN_IF_ERROR(simgpu::RefuseCapturing(stream));
  simgpu::SynchronizeStream(stream);
  return CUDA_SUCCESS;
}

// Reads one property of a stream.
#define SIMGPU_STREAM_GETTER(function, type, expression)         \
  SIMGPU_API function(CUstream handle, type* value) {            \
    SIMGPU_ENTER();                                              \
    if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;       \
    const Guard guard;                                           \
    Stream* stream = nullptr;                                    \
    SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream)); \
    *value = expression;                                         \
    return CUDA_SUCCESS;                                         \
  }
SIMGPU_STREAM_GETTER(cuStreamGetPriority, int, stream->priority)
SIMGPU_STREAM_GETTER(cuStreamGetFlags, unsigned, stream->flags)
SIMGPU_STREAM_GETTER(cuStreamGetId, unsigned long long, stream->id)
SIMGPU_STREAM_GETTER(cuStreamGetCtx, CUcontext, simgpu::ToHandle(stream->context))
SIMGPU_STREAM_GETTER(cuStreamGetDevice, CUdevice, stream->context->device->ordinal)
#undef SIMGPU_STREAM_GETTER

SIMGPU_API cuStreamGetCtx_v2(CUstream handle, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return cuStreamGetCtx(handle, context);
}

// ---- Memory operations on streams. Nothing runs that could wait, so a wait is over at once and a write happens now.

SIMGPU_API cuStreamWaitValue32(CUstream stream, CUdeviceptr, cuuint32_t, unsigned) {
  return simgpu::Submit(stream, {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP});
}

SIMGPU_API cuStreamWaitValue64(CUstream stream, CUdeviceptr, cuuint64_t, unsigned) {
  return simgpu::Submit(stream, {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP});
}

SIMGPU_API cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Submit(stream, {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                 .effect = [=] { *reinterpret_cast<volatile cuuint32_t*>(address) = value; }});
}

SIMGPU_API cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  if (address == 0) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Submit(stream, {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                                 .effect = [=] { *reinterpret_cast<volatile cuuint64_t*>(address) = value; }});
}

SIMGPU_API cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, unsigned) {
  if (count > 0 && operations == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& operation = operations[i];
    CUresult result = CUDA_SUCCESS;
    if (operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
      result = cuStreamWriteValue32(stream, operation.writeValue.address, operation.writeValue.value, 0);
    } else if (operation.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) {
      result = cuStreamWriteValue64(stream, operation.writeValue.address, operation.writeValue.value64, 0);
    } else {
      result = cuStreamWaitValue32(stream, 0, 0, 0);  // a wait or a barrier: only its place in a graph matters
    }
    SIMGPU_RETURN_IF_ERROR(result);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamAttachMemAsync(CUstream stream, CUdeviceptr, size_t, unsigned) { return simgpu::Submit(stream, {}); }

// ---- Attributes: kept nowhere, since nothing runs that they could steer.

SIMGPU_API cuStreamCopyAttributes(CUstream, CUstream) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamGetAttribute(CUstream, CUstreamAttrID, CUstreamAttrValue* value) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = {};
  return CUDA_SUCCESS;
}

SIMGPU_API cuStreamSetAttribute(CUstream, CUstreamAttrID, const CUstreamAttrValue*) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
