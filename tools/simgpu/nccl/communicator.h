// One rank's side of a communicator, and the table of those that the program holds.
#ifndef TOOLS_SIMGPU_NCCL_COMMUNICATOR_H_
#define TOOLS_SIMGPU_NCCL_COMMUNICATOR_H_

#include <cuda.h>
#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/simgpu/nccl/memory.h"
#include "tools/simgpu/nccl/segment.h"

namespace simgpu::nccl {

struct CommunicatorOptions {
  bool blocking = true;
  bool split_share = false;
  bool shrink_share = false;
};

// What ncclRedOpCreatePreMulSum made: contributions are multiplied by the scalar, then summed.
struct ScaledSum {
  bool in_use = false;
  ncclDataType_t type = ncclNumTypes;
  const void* device_scalar = nullptr;  // read when the collective runs; null: `scalar` was read at creation
  char scalar[8] = {};
};

// Concurrency: whoever runs tasks of a communicator holds its `order_mutex`. Abort() and the queries need no lock.
// Lifetime: the table below and every running call hold a reference, so that ncclCommAbort can come from another thread
// while a call is blocked inside.
class Communicator {
 public:
  Communicator(int ranks, int rank, CUcontext context, CUdevice device, CommunicatorOptions options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const int ranks;
  const int rank;
  const CUcontext context;
  const CUdevice device;
  const CommunicatorOptions options;

  std::mutex order_mutex;

  // Set while the communicator is made, before the program can use it.
  std::uint64_t hash = 0;
  std::unique_ptr<Segment> segment;
  std::unique_ptr<CoreMemory> core;
  std::shared_ptr<Connections> connections;
  std::vector<int> top_ranks;  // [rank]: its rank in the topmost communicator that shares `connections`

  // Guarded by order_mutex.
  std::uint32_t next_sequence = 0;     // of collectives that move data
  std::uint64_t next_operation = 0;    // for error texts: "ncclAllReduce #12"
  std::uint32_t next_split = 1;        // splits and shrinks so far, + 1
  std::vector<ScaledSum> scaled_sums;  // handle: ncclNumOps + index

  // What ncclCommGetAsyncError reports: ncclInProgress while being made in the background, then success or, for good,
  // the first error.
  ncclResult_t state() const { return state_.load(std::memory_order_acquire); }
  void SetState(ncclResult_t state);
  // Waits until the communicator is no longer being made. Bounded, because its making is.
  void AwaitMade() const;
  // Takes the communicator out of use, and tells the other ranks. Keeps the first error.
  void Break(ncclResult_t result);

  // Makes whatever is running, or will be started, return with an error.
  void Abort();
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }
  // Like Abort, but splitting and destroying go on working, and peers are not told.
  void Revoke() { revoked_.store(true, std::memory_order_release); }
  bool revoked() const { return revoked_.load(std::memory_order_acquire); }

  std::uint64_t device_bytes() const;
  // "communicator 0123456789abcdef"
  std::string Name() const;

 private:
  std::atomic<ncclResult_t> state_{ncclInProgress};
  std::atomic<bool> aborted_{false};
  std::atomic<bool> revoked_{false};
};

// The handles that are out.
ncclComm_t Register(std::shared_ptr<Communicator> communicator);
void Unregister(ncclComm_t handle);
// Null for a handle that is not, or no longer, a communicator.
std::shared_ptr<Communicator> Find(ncclComm_t handle);
ncclComm_t HandleOf(const Communicator& communicator);

// For API functions: the communicator of an argument, or null after Fail() has said what is wrong with it.
std::shared_ptr<Communicator> FindArgument(const char* function, ncclComm_t handle);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_COMMUNICATOR_H_
