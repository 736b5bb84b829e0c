// What compiled programs call before main, and around their <<<>>> launches. The compiler's start-up code knows these
// prototypes from crt/host_runtime.h, which only its own output can include.
#include <vector>

#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"
#include "tools/simgpu/runtime/registry.h"

using namespace simgpu::runtime;

namespace {

// A launch's <<<...>>> parameters, between the push by the caller and the pop by the kernel's host stub.
struct CallConfiguration {
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  cudaStream_t stream;
};

std::vector<CallConfiguration>& CallConfigurations() {
  thread_local std::vector<CallConfiguration> configurations;
  return configurations;
}

FatBinary* FromHandle(void** handle) { return reinterpret_cast<FatBinary*>(handle); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void** __cudaRegisterFatBinary(void* image) { return reinterpret_cast<void**>(Registry::Get().AddBinary(image)); }

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) { Registry::Get().RemoveBinary(FromHandle(handle)); }

// Images are loaded when something of them is first used.
char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void** handle, const char* host_function, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  Registry::Get().AddFunction(FromHandle(handle), host_function, name);
}

void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int, size_t size, int, int) {
  Registry::Get().AddVariable(FromHandle(handle), host_variable, name, size, false);
}

void __cudaRegisterManagedVar(void** handle, void** host_variable, char*, const char* name, int, size_t size, int,
                              int) {
  Registry::Get().AddVariable(FromHandle(handle), host_variable, name, size, true);
}

void __cudaRegisterHostVar(void** handle, const char* name, char* host_variable, size_t size) {
  Registry::Get().AddVariable(FromHandle(handle), host_variable, name, size, false);
}

void __cudaRegisterUnifiedTable(void**, void*) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream) {
  CallConfigurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  std::vector<CallConfiguration>& configurations = CallConfigurations();
  if (configurations.empty()) return Record(cudaErrorMissingConfiguration);
  const CallConfiguration& last = configurations.back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  configurations.pop_back();
  return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  CUkernel found = nullptr;
  const cudaError_t status = Registry::Get().FindKernel(function, &found);
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return Record(status);
}

}  // extern "C"
#pragma GCC visibility pop
