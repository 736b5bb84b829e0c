// The runtime's public header. The project compiles with hidden visibility; the functions that this header declares are
// the library's interface and must stay visible, which their first declaration decides.
#ifndef TOOLS_SIMGPU_RUNTIME_API_H_
#define TOOLS_SIMGPU_RUNTIME_API_H_

#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#endif  // TOOLS_SIMGPU_RUNTIME_API_H_
