// CUDA arrays: their element formats, and copies that involve them.
#ifndef TOOLS_SIMGPU_RUNTIME_ARRAY_H_
#define TOOLS_SIMGPU_RUNTIME_ARRAY_H_

#include <cuda.h>
#include <driver_types.h>

#include <cstddef>

namespace simgpu::runtime {

// Bytes of one element of the array; 1 for a null or unknown array.
size_t ElementSize(CUarray array);

// The driver's description of a copy. The runtime counts widths and offsets in elements when an array takes part in
// the copy, the driver in bytes.
CUDA_MEMCPY3D DriverCopy(const cudaMemcpy3DParms& copy);

// The same copy between the primary contexts of two devices.
cudaError_t DriverPeerCopy(const cudaMemcpy3DPeerParms& copy, CUDA_MEMCPY3D_PEER* result);

}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_ARRAY_H_
