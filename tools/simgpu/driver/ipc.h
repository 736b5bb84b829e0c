// Device memory that another process of the node opens. It is charged to the process that made it.
#pragma once

#include "tools/simgpu/driver/memory.h"

namespace simgpu {

// With the lock held. Ends the sharing of an allocation that is about to be freed: a process that has it open keeps the
// content, as it keeps a mapping of freed memory in life until it closes it.
void StopSharing(const Allocation& allocation);
void ClosePeer(Allocation* allocation);

}  // namespace simgpu
