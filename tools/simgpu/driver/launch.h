#pragma once

#include <cstdint>

namespace simgpu {

// Kernels launched by the process so far, those of graphs not counted.
std::uint64_t KernelCount();

}  // namespace simgpu
