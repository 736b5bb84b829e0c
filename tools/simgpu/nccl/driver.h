// The way to the driver, the one that genuine NCCL's static runtime takes: no link-time dependency on libcuda.so.1 but
// dlopen, then dlsym("cuGetProcAddress_v2"), then the cuGetProcAddress which that hands out, and everything else from
// there. An interposer must follow the same trail for the stand-in as for the real thing.
#ifndef TOOLS_SIMGPU_NCCL_DRIVER_H_
#define TOOLS_SIMGPU_NCCL_DRIVER_H_

#include <cuda.h>
#include <nccl.h>

#include <cstdint>

namespace simgpu::nccl {

struct Driver {
#define FUNCTION(name, version) decltype(&::name) name##_;
#include "tools/simgpu/nccl/driver_functions.inc"
#undef FUNCTION
};

// The resolved and initialised driver, or null after Fail() has said what is missing.
const Driver* GetDriver();

// "CUDA_ERROR_OUT_OF_MEMORY (2)" and the like, for error texts.
const char* Describe(CUresult result, char (&buffer)[64]);

// A value of the GPU profile by its key, or `fallback` where the profile has none.
std::uint64_t ProfileValue(const char* key, std::uint64_t fallback);

// The calling thread's context and its device; a thread that has none gets device 0's primary context, as the runtime
// would give it.
ncclResult_t CurrentDevice(const char* function, CUcontext* context, CUdevice* device);

// Makes `context` current in this thread, and at the end whatever was current before. NCCL calls may come from threads
// that have another device current, as when one process drives several.
class ContextScope {
 public:
  explicit ContextScope(CUcontext context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  CUcontext previous_ = nullptr;
  bool changed_ = false;
};

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_DRIVER_H_
