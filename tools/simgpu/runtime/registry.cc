#include "tools/simgpu/runtime/registry.h"

#include <algorithm>

#include "tools/simgpu/driver/export_table.h"
#include "tools/simgpu/runtime/forward.h"

namespace simgpu::runtime {
namespace {

// The driver's stand-in doesn't read images, so it has to be told how large their variables are.
void DeclareGlobal(const void* image, const char* name, size_t size) {
  const void* table = nullptr;
  const CUresult found = GetDriver().cuGetExportTable(&table, &kExportTableId);
  if (found != CUDA_SUCCESS) return;
  static_cast<const ExportTable*>(table)->declare_global(image, name, size);
}

}  // namespace

Registry& Registry::Get() {
  static auto* registry = new Registry;
  return *registry;
}

FatBinary* Registry::AddBinary(const void* image) { return new FatBinary{image, nullptr}; }

void Registry::RemoveBinary(FatBinary* binary) {
  if (binary == nullptr) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(functions_, [binary](const Function& function) { return function.binary == binary; });
  std::erase_if(variables_, [binary](const auto& entry) { return entry.second.binary == binary; });
  function_index_.clear();
  indexed_ = 0;
  // The library itself stays with the driver: at exit the driver may be gone, and its memory goes with the process.
  delete binary;
}

void Registry::AddFunction(FatBinary* binary, const void* host_function, const char* name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  functions_.push_back({binary, host_function, name, nullptr});
}

void Registry::AddVariable(FatBinary* binary, const void* host_variable, const char* name, size_t size, bool managed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  variables_[host_variable] = {binary, name, size, managed};
}

void Registry::IndexNewFunctions() {
  function_index_.reserve(functions_.size());
  for (; indexed_ < functions_.size(); ++indexed_) function_index_[functions_[indexed_].host_function] = indexed_;
}

cudaError_t Registry::Load(FatBinary* binary) {
  if (binary->library != nullptr) return cudaSuccess;
  return CallDriver(GetDriver().cuLibraryLoadData, &binary->library, binary->image, nullptr, nullptr, 0U, nullptr,
                    nullptr, 0U);
}

cudaError_t Registry::FindKernel(const void* function, CUkernel* kernel) {
  if (function == nullptr) return cudaErrorInvalidDeviceFunction;
  const std::lock_guard<std::mutex> lock(mutex_);
  IndexNewFunctions();
  const auto found = function_index_.find(function);
  if (found == function_index_.end()) {
    *kernel = reinterpret_cast<CUkernel>(const_cast<void*>(function));
    return cudaSuccess;
  }
  Function& entry = functions_[found->second];
  if (entry.kernel == nullptr) {
    const cudaError_t loaded = Load(entry.binary);
    if (loaded != cudaSuccess) return loaded;
    const cudaError_t got =
        CallDriver(GetDriver().cuLibraryGetKernel, &entry.kernel, entry.binary->library, entry.name);
    if (got != cudaSuccess) return got;
  }
  *kernel = entry.kernel;
  return cudaSuccess;
}

cudaError_t Registry::FindVariable(const void* host_variable, void** address, size_t* size) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = variables_.find(host_variable);
  if (found == variables_.end()) return cudaErrorInvalidSymbol;
  const Variable& variable = found->second;
  DeclareGlobal(variable.binary->image, variable.name, variable.size);
  const cudaError_t loaded = Load(variable.binary);
  if (loaded != cudaSuccess) return loaded;
  const Driver& driver = GetDriver();
  return variable.managed
             ? CallDriver(driver.cuLibraryGetManaged, address, size, variable.binary->library, variable.name)
             : CallDriver(driver.cuLibraryGetGlobal, address, size, variable.binary->library, variable.name);
}

}  // namespace simgpu::runtime
