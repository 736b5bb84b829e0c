#include "tools/simgpu/nccl/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <iterator>

#include "tools/simgpu/driver/export_table.h"
#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

constexpr int kResolverVersion = 12000;  // the five-argument cuGetProcAddress

constexpr struct {
  const char* name;
  int version;
} kFunctions[] = {
#define FUNCTION(name, version) {#name, version},
#include "tools/simgpu/nccl/driver_functions.inc"
#undef FUNCTION
};

bool Resolve(Driver& driver) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    Fail(ncclSystemError, "cannot load the driver: %s; is the folder of the stand-ins in LD_LIBRARY_PATH?", dlerror());
    return false;
  }
  const auto outer = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  void* nested = nullptr;
  if (outer == nullptr || outer("cuGetProcAddress", &nested, kResolverVersion, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                                nullptr) != CUDA_SUCCESS) {
    Fail(ncclSystemError, "libcuda.so.1 has no cuGetProcAddress of version %d", kResolverVersion);
    return false;
  }
  const auto get_proc_address = reinterpret_cast<GetProcAddress>(nested);
  void** slots[] = {
#define FUNCTION(name, version) reinterpret_cast<void**>(&driver.name##_),
#include "tools/simgpu/nccl/driver_functions.inc"
#undef FUNCTION
  };
  for (std::size_t i = 0; i < std::size(slots); ++i) {
    if (get_proc_address(kFunctions[i].name, slots[i], kFunctions[i].version, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                         nullptr) != CUDA_SUCCESS ||
        *slots[i] == nullptr) {
      Fail(ncclSystemError, "libcuda.so.1 has no %s of version %d", kFunctions[i].name, kFunctions[i].version);
      return false;
    }
  }
  char text[64];
  if (const CUresult result = driver.cuInit_(0); result != CUDA_SUCCESS) {
    Fail(ncclUnhandledCudaError, "cuInit: %s", Describe(result, text));
    return false;
  }
  return true;
}

const ExportTable* GetExportTable() {
  static const ExportTable* const table = []() -> const ExportTable* {
    const Driver* driver = GetDriver();
    const void* found = nullptr;
    if (driver == nullptr || driver->cuGetExportTable_(&found, &kExportTableId) != CUDA_SUCCESS) return nullptr;
    return static_cast<const ExportTable*>(found);
  }();
  return table;
}

}  // namespace

const Driver* GetDriver() {
  static Driver driver;
  static const bool resolved = Resolve(driver);
  return resolved ? &driver : nullptr;
}

const char* Describe(CUresult result, char (&buffer)[64]) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    std::snprintf(buffer, sizeof buffer, "out of memory (CUresult %d)", result);
  } else {
    std::snprintf(buffer, sizeof buffer, "CUresult %d", result);
  }
  return buffer;
}

std::uint64_t ProfileValue(const char* key, std::uint64_t fallback) {
  const ExportTable* table = GetExportTable();
  std::uint64_t value = 0;
  return table != nullptr && table->number(key, &value) == CUDA_SUCCESS ? value : fallback;
}

ncclResult_t CurrentDevice(const char* function, CUcontext* context, CUdevice* device) {
  const Driver* driver = GetDriver();
  if (driver == nullptr) return ncclSystemError;
  CUresult result = driver->cuCtxGetCurrent_(context);
  if (result == CUDA_SUCCESS && *context == nullptr) {
    result = driver->cuDeviceGet_(device, 0);
    if (result == CUDA_SUCCESS) result = driver->cuDevicePrimaryCtxRetain_(context, *device);
    if (result == CUDA_SUCCESS) result = driver->cuCtxSetCurrent_(*context);
  } else if (result == CUDA_SUCCESS) {
    result = driver->cuCtxGetDevice_(device);
  }
  if (result == CUDA_SUCCESS) return ncclSuccess;
  char text[64];
  return Fail(ncclUnhandledCudaError, "%s : no current device: %s", function, Describe(result, text));
}

ContextScope::ContextScope(CUcontext context) {
  const Driver* driver = GetDriver();
  if (driver == nullptr || driver->cuCtxGetCurrent_(&previous_) != CUDA_SUCCESS || previous_ == context) return;
  changed_ = driver->cuCtxSetCurrent_(context) == CUDA_SUCCESS;
}

ContextScope::~ContextScope() {
  if (changed_) GetDriver()->cuCtxSetCurrent_(previous_);
}

}  // namespace simgpu::nccl
