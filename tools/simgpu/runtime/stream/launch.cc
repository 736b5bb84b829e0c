// Kernel launches.
#include "tools/simgpu/runtime/registry.h"
#include "tools/simgpu/runtime/stream_api.h"

using namespace simgpu::runtime;

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

namespace {

// The driver takes a kernel handle wherever it takes a function.
CUfunction AsFunction(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

cudaError_t Launch(CUkernel kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuLaunchKernel>(AsFunction(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                                         block.z, shared_bytes, stream, arguments, nullptr);
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                             cudaStream_t stream) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  CUkernel kernel = nullptr;
  const cudaError_t found = Registry::Get().FindKernel(function, &kernel);
  return found != cudaSuccess ? Record(found) : Launch(kernel, grid, block, arguments, shared_bytes, stream);
}

// What compiled code calls, with the handle that __cudaGetKernel gave it.
#ifdef SIMGPU_PER_THREAD_STREAM
#define CUDA_LAUNCH_KERNEL __cudaLaunchKernel_ptsz
#else
#define CUDA_LAUNCH_KERNEL __cudaLaunchKernel
#endif
__attribute__((visibility("default"))) cudaError_t CUDA_LAUNCH_KERNEL(cudaKernel_t kernel, dim3 grid, dim3 block,
                                                                      void** arguments, size_t shared_bytes,
                                                                      cudaStream_t stream) {
  return Launch(reinterpret_cast<CUkernel>(kernel), grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                                        size_t shared_bytes, cudaStream_t stream) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  CUkernel kernel = nullptr;
  const cudaError_t found = Registry::Get().FindKernel(function, &kernel);
  if (found != cudaSuccess) return Record(found);
  return ForwardStream<&StreamFunctions::cuLaunchCooperativeKernel>(AsFunction(kernel), grid.x, grid.y, grid.z, block.x,
                                                                    block.y, block.z, shared_bytes, stream, arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  if (config == nullptr) return Record(cudaErrorInvalidValue);
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  CUkernel kernel = nullptr;
  const cudaError_t found = Registry::Get().FindKernel(function, &kernel);
  if (found != cudaSuccess) return Record(found);
  const CUlaunchConfig driver_config = {config->gridDim.x,
                                        config->gridDim.y,
                                        config->gridDim.z,
                                        config->blockDim.x,
                                        config->blockDim.y,
                                        config->blockDim.z,
                                        static_cast<unsigned>(config->dynamicSmemBytes),
                                        reinterpret_cast<CUstream>(config->stream),
                                        reinterpret_cast<CUlaunchAttribute*>(config->attrs),
                                        config->numAttrs};
  return ForwardStream<&StreamFunctions::cuLaunchKernelEx>(&driver_config, AsFunction(kernel), arguments, nullptr);
}

}  // extern "C"
