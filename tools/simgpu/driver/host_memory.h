// Page-locked host memory: real memory, of which the driver only keeps the books.
#pragma once

#include "tools/simgpu/driver/memory.h"

namespace simgpu {

// With the lock held: frees an allocation, or forgets a registration.
void FreeHost(Allocation* allocation);

}  // namespace simgpu
