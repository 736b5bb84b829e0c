// The device code of the program: what the compiler's start-up code registers, and its lazy loading into the driver.
//
// Registration happens while libraries are loaded, tens of thousands of times for a framework, and mostly for code that
// is never launched: it only appends. The index is built and an image loaded when something of it is first asked for.
#ifndef TOOLS_SIMGPU_RUNTIME_REGISTRY_H_
#define TOOLS_SIMGPU_RUNTIME_REGISTRY_H_

#include <cuda.h>
#include <driver_types.h>

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace simgpu::runtime {

// One embedded image; its address is the handle that the start-up code holds.
struct FatBinary {
  const void* image = nullptr;
  CUlibrary library = nullptr;
};

class Registry {
 public:
  // Lives for ever: code is registered before main and unregistered by exit handlers.
  static Registry& Get();

  FatBinary* AddBinary(const void* image);
  void RemoveBinary(FatBinary* binary);
  void AddFunction(FatBinary* binary, const void* host_function, const char* name);
  void AddVariable(FatBinary* binary, const void* host_variable, const char* name, size_t size, bool managed);

  // The kernel behind `function`: the address of a registered host function, or a kernel handle, which the launching
  // entry points accept in its place.
  cudaError_t FindKernel(const void* function, CUkernel* kernel);

  // The device address and size of a registered variable in the current context.
  cudaError_t FindVariable(const void* host_variable, void** address, size_t* size);

 private:
  struct Function {
    FatBinary* binary;
    const void* host_function;
    const char* name;  // belongs to the registering library, which unregisters before it goes
    CUkernel kernel;
  };
  struct Variable {
    FatBinary* binary;
    const char* name;
    size_t size;
    bool managed;
  };

  void IndexNewFunctions();
  cudaError_t Load(FatBinary* binary);

  std::mutex mutex_;  // guards everything below
  std::vector<Function> functions_;
  size_t indexed_ = 0;  // how many of functions_ the index covers
  std::unordered_map<const void*, size_t> function_index_;
  std::unordered_map<const void*, Variable> variables_;
};

}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_REGISTRY_H_
