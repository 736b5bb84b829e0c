// The driver's entry points by name: the question goes to the driver's resolver as it came.
#include "tools/simgpu/runtime/stream_api.h"

using namespace simgpu::runtime;

namespace {

constexpr cuuint64_t kDefaultStreamFlag =
#ifdef SIMGPU_PER_THREAD_STREAM
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
#else
    CU_GET_PROC_ADDRESS_LEGACY_STREAM;
#endif

cudaDriverEntryPointQueryResult FromDriverResult(CUdriverProcAddressQueryResult result) {
  switch (result) {
    case CU_GET_PROC_ADDRESS_SUCCESS:
      return cudaDriverEntryPointSuccess;
    case CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT:
      return cudaDriverEntryPointVersionNotSufficent;
    default:
      return cudaDriverEntryPointSymbolNotFound;
  }
}

}  // namespace

extern "C" {

// A name that the driver doesn't know is reported through `status`, and an error only for callers without one.
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return Record(cudaErrorInvalidValue);
  *function = nullptr;
  const Driver& driver = GetDriver();
  if (driver.get_proc_address == nullptr) return Record(cudaErrorInsufficientDriver);
  const cuuint64_t driver_flags = flags == cudaEnableDefault ? kDefaultStreamFlag : flags;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = driver.get_proc_address(symbol, function, static_cast<int>(version), driver_flags, &found);
  if (status != nullptr) {
    *status = FromDriverResult(found);
    return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : Record(result);
  }
  return Record(result);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, SIMGPU_RUNTIME_VERSION, flags, status);
}

}  // extern "C"
