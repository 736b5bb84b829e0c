#pragma once

#include "tools/simgpu/driver/graph.h"

namespace simgpu {

// The copy of a graph's node in an instance. Null: no such instance, or no such node in it. With the lock held.
Node* FindInExec(CUgraphExec exec, std::uint64_t node_id);

}  // namespace simgpu
