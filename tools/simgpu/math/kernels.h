// What a library of NVIDIA's does when it computes: it launches kernels of its own on the caller's stream. Here they
// are launched through the runtime that each library embeds, so that streams, events, graph captures and profilers see
// them; they do nothing.
#ifndef TOOLS_SIMGPU_MATH_KERNELS_H_
#define TOOLS_SIMGPU_MATH_KERNELS_H_

#include <driver_types.h>

#include <cstdint>
#include <string>

namespace simgpu::math {

// Launches the library's kernel of that name. Thread-safe.
cudaError_t LaunchKernel(const std::string& name, cudaStream_t stream);

// A number of the device's profile, such as "cublas.handle_bytes", or `fallback` where the profile has none.
std::uint64_t ProfileNumber(const char* key, std::uint64_t fallback);

}  // namespace simgpu::math

#endif  // TOOLS_SIMGPU_MATH_KERNELS_H_
