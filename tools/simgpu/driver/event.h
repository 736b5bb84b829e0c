#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/simgpu/driver/graph.h"
#include "tools/simgpu/driver/pool.h"
#include "tools/simgpu/driver/stream.h"

namespace simgpu {

struct Event {
  Context* context;
  unsigned flags;
  bool recorded = false;
  std::uint64_t count = 0;                        // of operations when it was recorded
  std::shared_ptr<std::uint64_t> synchronized{};  // of the stream that recorded it
  VainQueries vain_queries{};
  std::int64_t time_ns = 0;
  // Recorded in a capture that still goes on: what a stream that waits for it must come behind.
  std::weak_ptr<Capture> capture{};
  std::vector<Node*> frontier{};
};

// With the lock held.
bool IsEvent(CUevent handle);
// The event stands for all work so far. `synchronized` is what its stream knows to be done.
void RecordNow(CUevent handle, std::shared_ptr<std::uint64_t> synchronized);

}  // namespace simgpu
