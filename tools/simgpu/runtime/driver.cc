#include "tools/simgpu/runtime/driver.h"

#include <dlfcn.h>

#include <algorithm>

#include "tools/simgpu/runtime/error.h"

namespace simgpu::runtime {
namespace {

constexpr const char kDriverLibrary[] = "libcuda.so.1";
constexpr int kFirstResolverVersion = 11030;   // cuGetProcAddress with four parameters
constexpr int kSecondResolverVersion = 12000;  // with five: the result says why nothing was found
constexpr int kFirstPerThreadVersion = 7000;   // CUDA 7.0 introduced per-thread default streams

class Resolver {
 public:
  // Null when the driver is absent or too old to have a resolver.
  static PFN_cuGetProcAddress_v12000 Find() {
    void* library = dlopen(kDriverLibrary, RTLD_NOW);
    if (library == nullptr) return nullptr;
    auto outer = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(library, "cuGetProcAddress_v2"));
    if (outer == nullptr) return nullptr;
    // The genuine runtime probes with an empty name, and asks for both ABIs of the nested resolver.
    Resolve(outer, "", 0, CU_GET_PROC_ADDRESS_DEFAULT);
    Resolve(outer, "cuGetProcAddress", kFirstResolverVersion, CU_GET_PROC_ADDRESS_DEFAULT);
    void* nested = Resolve(outer, "cuGetProcAddress", kSecondResolverVersion, CU_GET_PROC_ADDRESS_DEFAULT);
    return nested == nullptr ? outer : reinterpret_cast<PFN_cuGetProcAddress_v12000>(nested);
  }

  static void* Resolve(PFN_cuGetProcAddress_v12000 resolver, const char* name, int version, cuuint64_t flags) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (resolver(name, &function, version, flags, &found) != CUDA_SUCCESS) return nullptr;
    return function;
  }
};

void ResolveAll(Driver* driver) {
  const PFN_cuGetProcAddress_v12000 resolver = driver->get_proc_address;
#define DRIVER_FUNCTION(name, version)                      \
  driver->name = reinterpret_cast<PFN_##name##_v##version>( \
      Resolver::Resolve(resolver, #name, version, CU_GET_PROC_ADDRESS_DEFAULT));
#define STREAM_FUNCTION(name, version)                                                   \
  driver->legacy.name = reinterpret_cast<PFN_##name##_v##version>(                       \
      Resolver::Resolve(resolver, #name, version, CU_GET_PROC_ADDRESS_DEFAULT));         \
  driver->per_thread.name = reinterpret_cast<PFN_##name##_v##version>(Resolver::Resolve( \
      resolver, #name, std::max(version, kFirstPerThreadVersion), CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
#include "tools/simgpu/runtime/driver_functions.inc"
}

const Driver* Load() {
  auto* driver = new Driver;
  driver->get_proc_address = Resolver::Find();
  if (driver->get_proc_address == nullptr) {
    driver->status = cudaErrorInsufficientDriver;
    return driver;
  }
  ResolveAll(driver);
  driver->status = driver->cuInit == nullptr ? cudaErrorInsufficientDriver : FromDriver(driver->cuInit(0));
  return driver;
}

}  // namespace

const Driver& GetDriver() {
  static const Driver* const driver = Load();
  return *driver;
}

}  // namespace simgpu::runtime
