#include "tools/simgpu/driver/module.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tools/simgpu/driver/memory.h"

namespace simgpu {
namespace {

constexpr std::size_t kUndeclaredGlobalBytes = 64 << 10;

struct Image;

struct Function {
  Image* image;
  std::string name;
  std::set<const Context*> loaded_in{};
  std::map<int, int> attributes{};  // those that were set
};

// A module (of one context) or a library (of all).
struct Image {
  const void* source;
  Context* context;  // null: a library
  std::map<std::string, std::unique_ptr<Function>> functions{};
  std::map<std::pair<const Context*, std::string>, std::pair<CUdeviceptr, std::size_t>> globals{};
};

struct Registry {
  std::unordered_set<Image*> images;
  std::unordered_set<Function*> functions;
  std::map<std::pair<const void*, std::string>, std::size_t> declared;
};

Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

template <typename Handle>
Image* ImageOf(Handle handle) {
  auto* image = reinterpret_cast<Image*>(handle);
  return GetRegistry().images.count(image) != 0 ? image : nullptr;
}

template <typename Handle>
Function* FunctionOf(Handle handle) {
  auto* function = reinterpret_cast<Function*>(handle);
  return GetRegistry().functions.count(function) != 0 ? function : nullptr;
}

template <typename Handle>
CUresult Load(Handle* handle, const void* source, Context* context) {
  if (handle == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  auto* image = new Image{.source = source, .context = context};
  GetRegistry().images.insert(image);
  *handle = reinterpret_cast<Handle>(image);
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult LoadFile(Handle* handle, const char* path, Context* context) {
  if (handle == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!std::ifstream(path)) return CUDA_ERROR_FILE_NOT_FOUND;
  static const char file_image = 0;
  return Load(handle, &file_image, context);
}

template <typename Handle>
CUresult Unload(Handle handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Image* image = ImageOf(handle);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Registry& registry = GetRegistry();
  for (const auto& [key, global] : image->globals) {
    Allocation* allocation = FindAllocationAt(global.first);
    if (allocation != nullptr && allocation->kind == MemoryKind::kGlobal) FreeLinear(allocation);
  }
  // The code's chunks stay with their context. Names stay, since activity may still be told of them.
  for (auto& [name, function] : image->functions) {
    registry.functions.erase(function.get());
    function.release();
  }
  registry.images.erase(image);
  delete image;
  return CUDA_SUCCESS;
}

template <typename FunctionHandle, typename ImageHandle>
CUresult GetFunction(FunctionHandle* handle, ImageHandle image_handle, const char* name) {
  SIMGPU_ENTER();
  if (handle == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Image* image = ImageOf(image_handle);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  std::unique_ptr<Function>& function = image->functions[name];
  if (function == nullptr) {
    function = std::make_unique<Function>(Function{.image = image, .name = name});
    GetRegistry().functions.insert(function.get());
  }
  *handle = reinterpret_cast<FunctionHandle>(function.get());
  return CUDA_SUCCESS;
}

template <typename ImageHandle>
CUresult GetGlobal(CUdeviceptr* address, std::size_t* bytes, ImageHandle image_handle, const char* name) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(RequireContext(&context));
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Image* image = ImageOf(image_handle);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto& global = image->globals[{context, name}];
  // A reset of the context has freed what was there before.
  const Allocation* allocation = FindAllocationAt(global.first);
  if (allocation == nullptr || allocation->kind != MemoryKind::kGlobal) {
    const auto declared = GetRegistry().declared.find({image->source, name});
    global.second = declared == GetRegistry().declared.end() ? kUndeclaredGlobalBytes : declared->second;
    SIMGPU_RETURN_IF_ERROR(AllocateLinear(context, global.second, MemoryKind::kGlobal, &global.first));
  }
  if (address != nullptr) *address = global.first;
  if (bytes != nullptr) *bytes = global.second;
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult GetAttribute(int* value, CUfunction_attribute attribute, Handle handle) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Function* function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto set = function->attributes.find(attribute);
  if (set != function->attributes.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  const auto capability = static_cast<int>(GetProfile()->Get("compute_capability.major") * 10 +
                                           GetProfile()->Get("compute_capability.minor"));
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = capability;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = 49152;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return attribute < CU_FUNC_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
}

template <typename Handle>
CUresult SetAttribute(CUfunction_attribute attribute, int value, Handle handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Function* function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  function->attributes[attribute] = value;
  return CUDA_SUCCESS;
}

template <typename Handle>
CUresult GetName(const char** name, Handle handle) {
  SIMGPU_ENTER();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Function* function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->name.c_str();
  return CUDA_SUCCESS;
}

template <typename Handle, typename ImageHandle>
CUresult List(Handle* handles, unsigned count, ImageHandle image_handle) {
  SIMGPU_ENTER();
  const Guard guard;
  const Image* image = ImageOf(image_handle);
  if (image == nullptr || handles == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned written = 0;
  for (const auto& [name, function] : image->functions) {
    if (written < count) handles[written++] = reinterpret_cast<Handle>(function.get());
  }
  return CUDA_SUCCESS;
}

template <typename ImageHandle>
CUresult Count(unsigned* count, ImageHandle image_handle) {
  SIMGPU_ENTER();
  const Guard guard;
  const Image* image = ImageOf(image_handle);
  if (image == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = static_cast<unsigned>(image->functions.size());  // those that were asked for: the image isn't read
  return CUDA_SUCCESS;
}

}  // namespace

const char* FunctionName(CUfunction handle) {
  const Function* function = FunctionOf(handle);
  return function == nullptr ? "?" : function->name.c_str();
}

CUresult UseFunction(CUfunction handle, Context* context) {
  Function* function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!function->loaded_in.insert(context).second) return CUDA_SUCCESS;
  const CUresult result = ChargeCode(context, GetProfile()->Get("module.bytes_per_function"));
  if (result != CUDA_SUCCESS) function->loaded_in.erase(context);
  return result;
}

CUresult DeclareGlobal(const void* image, const char* name, std::size_t bytes) {
  if (image == nullptr || name == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  GetRegistry().declared[{image, name}] = bytes;
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using simgpu::Context;
using simgpu::Guard;

// ---- Modules

SIMGPU_API cuModuleLoadData(CUmodule* module, const void* image) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  return simgpu::Load(module, image, context);
}

SIMGPU_API cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}

SIMGPU_API cuModuleLoadFatBinary(CUmodule* module, const void* image) { return cuModuleLoadData(module, image); }

SIMGPU_API cuModuleLoad(CUmodule* module, const char* path) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  return simgpu::LoadFile(module, path, context);
}

SIMGPU_API cuModuleUnload(CUmodule module) { return simgpu::Unload(module); }

SIMGPU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return simgpu::GetFunction(function, module, name);
}

SIMGPU_API cuModuleGetFunctionCount(unsigned* count, CUmodule module) { return simgpu::Count(count, module); }

SIMGPU_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  return simgpu::List(functions, count, module);
}

SIMGPU_API cuModuleGetGlobal(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  return simgpu::GetGlobal(address, bytes, module, name);
}

SIMGPU_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

// ---- Libraries

SIMGPU_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
                             void**, unsigned) {
  SIMGPU_ENTER();
  return simgpu::Load(library, code, nullptr);
}

SIMGPU_API cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned,
                                 CUlibraryOption*, void**, unsigned) {
  SIMGPU_ENTER();
  return simgpu::LoadFile(library, path, nullptr);
}

SIMGPU_API cuLibraryUnload(CUlibrary library) { return simgpu::Unload(library); }

SIMGPU_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return simgpu::GetFunction(kernel, library, name);
}

SIMGPU_API cuLibraryGetKernelCount(unsigned* count, CUlibrary library) { return simgpu::Count(count, library); }

SIMGPU_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return simgpu::List(kernels, count, library);
}

// A library is loaded into a context when it is first used there. Here it is one and the same object.
SIMGPU_API cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  const Guard guard;
  if (module == nullptr || simgpu::ImageOf(library) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

SIMGPU_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return simgpu::GetGlobal(address, bytes, library, name);
}

SIMGPU_API cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  return simgpu::GetGlobal(address, bytes, library, name);
}

// ---- Functions and kernels. A kernel is its function.

SIMGPU_API cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (simgpu::FunctionOf(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

SIMGPU_API cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  SIMGPU_ENTER();
  const Guard guard;
  const simgpu::Function* function = simgpu::FunctionOf(kernel);
  if (library == nullptr || function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *library = reinterpret_cast<CUlibrary>(function->image);
  return CUDA_SUCCESS;
}

SIMGPU_API cuFuncGetModule(CUmodule* module, CUfunction handle) {
  SIMGPU_ENTER();
  const Guard guard;
  const simgpu::Function* function = simgpu::FunctionOf(handle);
  if (module == nullptr || function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(function->image);
  return CUDA_SUCCESS;
}

SIMGPU_API cuFuncGetName(const char** name, CUfunction function) { return simgpu::GetName(name, function); }
SIMGPU_API cuKernelGetName(const char** name, CUkernel kernel) { return simgpu::GetName(name, kernel); }

SIMGPU_API cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return simgpu::GetAttribute(value, attribute, function);
}
SIMGPU_API cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice) {
  return simgpu::GetAttribute(value, attribute, kernel);
}
SIMGPU_API cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return simgpu::SetAttribute(attribute, value, function);
}
SIMGPU_API cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return simgpu::SetAttribute(attribute, value, kernel);
}
SIMGPU_API cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
SIMGPU_API cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
SIMGPU_API cuFuncSetSharedMemConfig(CUfunction, CUsharedconfig) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}

SIMGPU_API cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  const Guard guard;
  const simgpu::Function* function = simgpu::FunctionOf(handle);
  if (state == nullptr || function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state =
      function->loaded_in.count(context) != 0 ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
  return CUDA_SUCCESS;
}

SIMGPU_API cuFuncLoad(CUfunction function) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  const Guard guard;
  return simgpu::UseFunction(function, context);
}
