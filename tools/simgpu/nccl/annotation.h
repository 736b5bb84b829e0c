// The NVTX annotations of the genuine library, from the same headers: domain "NCCL", one push/pop range per call with
// the function's name as a registered string, and the call's figures as a payload with a registered schema.
//
// Two kinds exist. Ranges of operations carry their payload at the push. Those of communicators' making and ending know
// their figures only at the end and give them to nvtxRangePopPayload, a function of NVTX's payload extension: a tool
// that attaches to the core API alone sees these ranges begin and never end.
//
// NCCL_NVTX_DISABLE=1 turns all of it off.
#ifndef TOOLS_SIMGPU_NCCL_ANNOTATION_H_
#define TOOLS_SIMGPU_NCCL_ANNOTATION_H_

#include <nccl.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace simgpu::nccl {

// Schema numbers of the genuine library, release 2.28; they are part of what tools know.
enum class Schema : std::uint64_t {
  kCommInitRank = 0,
  kCommInitAll = 1,
  kCommDestroy = 2,
  kCommAbort = 3,
  kAllGather = 4,
  kAllReduce = 5,
  kBroadcast = 6,
  kReduceScatter = 7,
  kReduce = 8,
  kSend = 9,
  kRecv = 10,
  kCommInitRankConfig = 11,
  kCommInitRankScalable = 12,
  kCommSplit = 13,
  kCommFinalize = 14,
  kCommShrink = 15,
  kAlltoAll = 16,
  kGather = 17,
  kScatter = 18,
  kCommRevoke = 19,
};

// Payloads as they lie in memory. What pads them out is a member, so that it holds no leftovers.
struct MessagePayload {  // AllGather, AlltoAll
  std::uint64_t communicator;
  std::size_t bytes;
};
struct ReductionPayload {  // AllReduce, ReduceScatter
  std::uint64_t communicator;
  std::size_t bytes;
  ncclRedOp_t reduction;
  int padding = 0;
};
struct RootedPayload {  // Broadcast, Gather, Scatter: root; Send, Recv: peer
  std::uint64_t communicator;
  std::size_t bytes;
  int root;
  int padding = 0;
};
struct ReducePayload {
  std::uint64_t communicator;
  std::size_t bytes;
  int root;
  ncclRedOp_t reduction;
};
struct InitAllPayload {
  std::uint64_t communicator;
  int devices;
  int padding = 0;
};
struct InitRankPayload {  // CommInitRank, ...Config, ...Scalable, CommDestroy, CommAbort, CommRevoke
  std::uint64_t communicator;
  int ranks;
  int rank;
  int device;
  int padding = 0;
};
struct SplitPayload {
  std::uint64_t communicator;
  std::uint64_t parent;
  int ranks;
  int rank;
  int device;
  int color;
  int key;
  int padding = 0;
};
struct ShrinkPayload {
  std::uint64_t communicator;
  int ranks;
  int rank;
  int device;
  int excluded;
};
struct FinalizePayload {
  std::uint64_t communicator;
};

// A function's name, registered with NVTX at its first range. One static object per function.
class RangeName {
 public:
  constexpr explicit RangeName(const char* function) : function_(function) {}
  nvtxStringHandle_t Handle();
  const char* function() const { return function_; }

 private:
  const char* function_;
  std::atomic<nvtxStringHandle_t> handle_{nullptr};
};

// From construction to destruction.
class Range {
 public:
  explicit Range(RangeName& name);
  template <class Payload>
  Range(RangeName& name, Schema schema, const Payload& payload) : Range(name, schema, &payload, sizeof payload) {}
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  // Gives the range a payload for its end.
  template <class Payload>
  void SetEndPayload(Schema schema, const Payload& payload) {
    static_assert(sizeof payload <= sizeof end_payload_);
    SetEndPayload(schema, &payload, sizeof payload);
  }

 private:
  Range(RangeName& name, Schema schema, const void* payload, std::size_t bytes);
  void SetEndPayload(Schema schema, const void* payload, std::size_t bytes);

  bool pushed_ = false;
  alignas(8) char end_payload_[48];
  nvtxPayloadData_t end_data_{.schemaId = 0, .size = 0, .payload = nullptr};
};

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_ANNOTATION_H_
