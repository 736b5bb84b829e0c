// Stream-ordered memory: pools that take physical memory in chunks and hand out parts of them.
//
// Since an operation has its effect when it is issued, memory that is freed into a pool is at once there for the next
// allocation of any stream. What a pool holds beyond its release threshold goes back to the device at the next
// synchronisation of a stream, an event or a context, chunk by chunk, as far as chunks are empty.
#pragma once

#include <cstdint>

#include "tools/simgpu/driver/heap.h"
#include "tools/simgpu/driver/memory.h"

namespace simgpu {

struct Pool {
  Device* device;
  bool is_default;
  bool destroyed = false;  // by the program; goes with its last allocation
  std::uint64_t release_threshold = 0;
  std::uint64_t max_bytes = 0;  // 0: no bound of its own
  std::uint64_t used = 0, used_high = 0;
  std::uint64_t reserved_high = 0;
  int reuse[3] = {1, 1, 1};  // attributes that are kept and change nothing
  ChunkHeap heap{};

  std::uint64_t reserved() const { return heap.total_bytes(); }
};

// All below: with the lock held.
Pool* DefaultPool(Device* device);
// The device's pool for cuMemAllocAsync.
Pool* CurrentPool(Device* device);
CUresult AllocateFromPool(Pool* pool, Context* context, std::size_t bytes, CUdeviceptr* address);
void FreeToPool(Allocation* allocation);
// A synchronisation: pools of the device give back what exceeds their threshold.
void TrimPoolsAtSynchronization(const Device* device);
// The device was reset: every pool of it is empty, and the default one is current again.
void ReleasePoolsOf(Device* device);

}  // namespace simgpu
