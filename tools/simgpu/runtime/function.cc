// Kernels: their attributes and occupancy, and libraries that a program loads itself.
#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"
#include "tools/simgpu/runtime/registry.h"

using namespace simgpu::runtime;

namespace {

// The kernel and the current device, for calls that ask about both.
struct KernelOnDevice {
  CUkernel kernel = nullptr;
  CUdevice device = 0;

  CUfunction function() const { return reinterpret_cast<CUfunction>(kernel); }
};

cudaError_t Find(const void* function, KernelOnDevice* found) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  const cudaError_t device = CurrentDevice(&found->device);
  return device != cudaSuccess ? device : Registry::Get().FindKernel(function, &found->kernel);
}

int KernelAttribute(const KernelOnDevice& on, CUfunction_attribute attribute) {
  int value = 0;
  CallDriver(GetDriver().cuKernelGetAttribute, &value, attribute, on.kernel, on.device);
  return value;
}

// Calls `body` with the kernel behind `function`, and records what it returns.
template <class Body>
cudaError_t WithKernel(const void* function, Body body) {
  KernelOnDevice on;
  const cudaError_t found = Find(function, &on);
  return Record(found != cudaSuccess ? found : body(on));
}

CUlaunchConfig DriverConfig(const cudaLaunchConfig_t& config) {
  return {config.gridDim.x,
          config.gridDim.y,
          config.gridDim.z,
          config.blockDim.x,
          config.blockDim.y,
          config.blockDim.z,
          static_cast<unsigned>(config.dynamicSmemBytes),
          reinterpret_cast<CUstream>(config.stream),
          reinterpret_cast<CUlaunchAttribute*>(config.attrs),
          config.numAttrs};
}

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return Record(cudaErrorInvalidValue);
  *attributes = {};
  return WithKernel(function, [attributes](const KernelOnDevice& on) {
    const auto read = [&on](CUfunction_attribute attribute) { return KernelAttribute(on, attribute); };
    attributes->sharedSizeBytes = static_cast<size_t>(read(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    attributes->constSizeBytes = static_cast<size_t>(read(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    attributes->localSizeBytes = static_cast<size_t>(read(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    attributes->maxThreadsPerBlock = read(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = read(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = read(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = read(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->cacheModeCA = read(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    attributes->maxDynamicSharedSizeBytes = read(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = read(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return WithKernel(function, [=](const KernelOnDevice& on) {
    return CallDriver(GetDriver().cuKernelSetAttribute, attribute, value, on.kernel, on.device);
  });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device) {
  return Forward<&Driver::cuKernelSetAttribute>(attribute, value, kernel, device);
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  return WithKernel(function, [config](const KernelOnDevice& on) {
    return CallDriver(GetDriver().cuKernelSetCacheConfig, on.kernel, config, on.device);
  });
}

// Shared memory banks have had one width since the Maxwell generation.
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return WithKernel(
      function, [name](const KernelOnDevice& on) { return CallDriver(GetDriver().cuKernelGetName, name, on.kernel); });
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size) {
  return WithKernel(function, [=](const KernelOnDevice& on) {
    return CallDriver(GetDriver().cuKernelGetParamInfo, on.kernel, index, offset, size);
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  return WithKernel(function, [kernel](const KernelOnDevice& on) {
    *kernel = reinterpret_cast<cudaKernel_t>(on.kernel);
    return cudaSuccess;
  });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* result, const void* function) {
  return WithKernel(function, [result](const KernelOnDevice& on) {
    return CallDriver(GetDriver().cuKernelGetFunction, result, on.kernel);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int block_size,
                                                                   size_t shared_bytes, unsigned int flags) {
  return WithKernel(function, [=](const KernelOnDevice& on) {
    return CallDriver(GetDriver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, on.function(),
                      block_size, shared_bytes, flags);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int block_size,
                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared_bytes,
                                                                cudaOccupancyDefault);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int block_size) {
  return WithKernel(function, [=](const KernelOnDevice& on) {
    return CallDriver(GetDriver().cuOccupancyAvailableDynamicSMemPerBlock, bytes, on.function(), blocks, block_size);
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t* config) {
  if (config == nullptr) return Record(cudaErrorInvalidValue);
  return WithKernel(function, [=](const KernelOnDevice& on) {
    const CUlaunchConfig driver_config = DriverConfig(*config);
    return CallDriver(GetDriver().cuOccupancyMaxPotentialClusterSize, size, on.function(), &driver_config);
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  if (config == nullptr) return Record(cudaErrorInvalidValue);
  return WithKernel(function, [=](const KernelOnDevice& on) {
    const CUlaunchConfig driver_config = DriverConfig(*config);
    return CallDriver(GetDriver().cuOccupancyMaxActiveClusters, clusters, on.function(), &driver_config);
  });
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  size_t size = 0;
  return Record(Registry::Get().FindVariable(symbol, address, &size));
}

cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  void* address = nullptr;
  return Record(Registry::Get().FindVariable(symbol, &address, size));
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit_options, void** jit_values,
                                unsigned int jit_count, cudaLibraryOption* options, void** values, unsigned int count) {
  return Forward<&Driver::cuLibraryLoadData>(library, code, jit_options, jit_values, jit_count, options, values, count);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption* jit_options,
                                    void** jit_values, unsigned int jit_count, cudaLibraryOption* options,
                                    void** values, unsigned int count) {
  return Forward<&Driver::cuLibraryLoadFromFile>(library, path, jit_options, jit_values, jit_count, options, values,
                                                 count);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library) { return Forward<&Driver::cuLibraryUnload>(library); }

cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  return Forward<&Driver::cuLibraryGetKernel>(kernel, library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int* count, cudaLibrary_t library) {
  return Forward<&Driver::cuLibraryGetKernelCount>(count, library);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned int count, cudaLibrary_t library) {
  return Forward<&Driver::cuLibraryEnumerateKernels>(kernels, count, library);
}

cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library, const char* name) {
  return Forward<&Driver::cuLibraryGetGlobal>(pointer, bytes, library, name);
}

cudaError_t cudaLibraryGetManaged(void** pointer, size_t* bytes, cudaLibrary_t library, const char* name) {
  return Forward<&Driver::cuLibraryGetManaged>(pointer, bytes, library, name);
}

cudaError_t cudaLibraryGetUnifiedFunction(void** pointer, cudaLibrary_t library, const char* name) {
  return Forward<&Driver::cuLibraryGetUnifiedFunction>(pointer, library, name);
}

}  // extern "C"
