// CUDA arrays: sizes without content.
#pragma once

#include "tools/simgpu/driver/context.h"

namespace simgpu {

// With the lock held.
void FreeArraysOf(const Context* context);

}  // namespace simgpu
