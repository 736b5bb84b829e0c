// Streams, and time on the simulated device.
//
// Nothing runs, so a stream holds no work: an operation has its effect when it is issued. What remains of time is the
// count of operations that streams were given: launches of kernels and graphs, copies, memsets, host functions, and
// stream-ordered memory. With SIMGPU_EVENT_LAG = N, an event completes when N further operations were issued after it
// was recorded (by any stream of the process) or when a synchronisation covers it: deterministic, and enough for
// record_stream and cudaEventQuery to matter as on a device that runs behind its host. A host that gives no more work
// and asks until what it gave is done would ask forever; so work that was asked about often enough meanwhile (Poll) is
// done.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "tools/simgpu/driver/context.h"

namespace simgpu {

struct Graph;
struct Node;

inline constexpr int kGreatestPriority = -5;  // as on GPUs since compute capability 7.0

// One capture: the set of streams that record into one graph.
struct Capture {
  std::uint64_t id;
  Graph* graph;
  Stream* origin;
  bool owns_graph;  // made by cuStreamBeginCapture, handed to the caller at the end
  bool invalid = false;
};

// How often in a row the host has asked in vain whether something is done, and how many operations there were then.
struct VainQueries {
  std::uint64_t operations = 0;
  int count = 0;
};

struct Stream {
  Context* context;
  unsigned flags;
  int priority;
  std::uint32_t id;
  std::uint64_t last_work = 0;  // count of operations when the stream last got work
  // Work up to this count is known to be done. Events share it, and outlive the stream.
  std::shared_ptr<std::uint64_t> synchronized = std::make_shared<std::uint64_t>(0);
  VainQueries vain_queries{};
  std::shared_ptr<Capture> capture{};
  std::vector<Node*> frontier{};  // in a capture: what the next node depends on
};

// All below: with the lock held.
Stream* NewStream(Context* context, unsigned flags, int priority);
void DestroyStreamsOf(const Context* context);
// The stream behind a handle, which may be one of the default streams of the current context.
CUresult FindStream(CUstream handle, Stream** stream);

// The streams that take part in a capture, its origin included.
std::vector<Stream*> StreamsIn(const Capture& capture);

// Is work that was given at this count of operations done?
bool IsDone(std::uint64_t count, std::uint64_t synchronized);
// The same for a host that asks, and may go on asking until the answer is yes: the eighth time in a row, with no
// operation in between, the stream has come as far as that work. Work is done in the order of its stream, so all before
// it is, too.
bool Poll(std::uint64_t count, std::uint64_t& synchronized, VainQueries& vain);
std::uint64_t OperationCount();
void CountOperation(Stream* stream);
// Everything given so far to the stream, or to all of a context's, is done from now on. Pools give back what they may.
void SynchronizeStream(Stream* stream);
CUresult SynchronizeContext(Context* context);

inline CUstream ToHandle(Stream* stream) { return reinterpret_cast<CUstream>(stream); }

}  // namespace simgpu
