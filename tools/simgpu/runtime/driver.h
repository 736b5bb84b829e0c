// The driver as the runtime sees it: a table of entry points, found the way the genuine runtime finds them.
//
// dlopen("libcuda.so.1") and dlsym("cuGetProcAddress_v2") give a first resolver; that one is asked for the nested
// "cuGetProcAddress", and the nested pointer resolves everything else, by name, version and stream mode. Tools that
// wrap the driver hook exactly this chain, so it must stay as it is.
//
// Included before any header that honours CUDA_API_PER_THREAD_DEFAULT_STREAM: the names of the members below must be
// the same in every translation unit.
#ifndef TOOLS_SIMGPU_RUNTIME_DRIVER_H_
#define TOOLS_SIMGPU_RUNTIME_DRIVER_H_

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "driver.h must be included before CUDA_API_PER_THREAD_DEFAULT_STREAM is defined"
#endif

#include <cuda.h>
#include <cudaTypedefs.h>
#include <driver_types.h>

namespace simgpu::runtime {

// Functions whose default stream (a null handle) means either the legacy stream or the calling thread's own.
struct StreamFunctions {
#define STREAM_FUNCTION(name, version) PFN_##name##_v##version name = nullptr;
#include "tools/simgpu/runtime/driver_functions.inc"
};

struct Driver {
#define DRIVER_FUNCTION(name, version) PFN_##name##_v##version name = nullptr;
#include "tools/simgpu/runtime/driver_functions.inc"

  StreamFunctions legacy;
  StreamFunctions per_thread;

  // The resolver that cudaGetDriverEntryPoint hands its questions to.
  PFN_cuGetProcAddress_v12000 get_proc_address = nullptr;

  // cudaSuccess, or why no call can succeed: no driver library, no device, a failed cuInit.
  cudaError_t status = cudaErrorInitializationError;
};

// The driver, loaded and initialised by the first call. Never fails: look at `status`. The object lives for ever,
// because calls arrive during process exit too.
const Driver& GetDriver();

}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_DRIVER_H_
