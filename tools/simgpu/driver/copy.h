// Copies and fills: small ones really happen, large ones into device memory are dropped (SIMGPU_COPY_MAX).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/simgpu/driver/graph.h"

namespace simgpu {

// Moves bytes, under the rule above. Takes the lock itself.
void MoveBytes(std::uintptr_t to, std::uintptr_t from, std::size_t bytes);
// The operations, for streams and for nodes of graphs.
Operation DescribeMove(std::uintptr_t to, std::uintptr_t from, std::size_t bytes);
CUresult DescribeCopy(const CUDA_MEMCPY3D& copy, Operation* operation);
Operation DescribeFill(CUdeviceptr address, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                       std::size_t height);

}  // namespace simgpu
