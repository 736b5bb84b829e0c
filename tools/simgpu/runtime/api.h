// The runtime's public headers. The project compiles with hidden visibility; the functions that these headers declare
// are the library's interface and must stay visible, which their first declaration decides.
#ifndef TOOLS_SIMGPU_RUNTIME_API_H_
#define TOOLS_SIMGPU_RUNTIME_API_H_

#pragma GCC visibility push(default)
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#endif  // TOOLS_SIMGPU_RUNTIME_API_H_
