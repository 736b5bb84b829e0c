// What the reserved bytes of the caching allocator are doing at one instant.
#pragma once

#include <cstdint>
#include <vector>

#include "ledger/replay/replayer.h"

namespace ledger::replay {

// Accounts of reserved memory that is not allocated; they never overlap.
struct FreeBytes {
  std::uint64_t pending = 0;   // freed, but a stream may still use it
  std::uint64_t inactive = 0;  // free, inside a segment of which another part is in use
  std::uint64_t cached = 0;    // segments that are free as a whole

  std::uint64_t Sum() const { return pending + inactive + cached; }
};

struct PoolUse {
  PoolId pool;
  std::uint64_t reserved = 0, allocated = 0;
  FreeBytes free;
};

struct SegmentUse {
  PoolUse shared;                      // the default pool
  std::vector<PoolUse> private_pools;  // by id
};

// Lays blocks and pending frees into the segments that contain them.
SegmentUse UseOf(const Snapshot& snapshot);

}  // namespace ledger::replay
