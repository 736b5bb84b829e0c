// The recorder's own questions to the driver, past our hooks: how much memory is in use, which device is this.
// Every one of them may be missing (an older driver, no driver at all); callers check.
#pragma once

#include "interpose/core/cuda_headers.h"

namespace ledger {

#define LEDGER_DRIVER_CALLS(X)  \
  X(cuDriverGetVersion)         \
  X(cuMemGetInfo_v2)            \
  X(cuCtxGetDevice)             \
  X(cuCtxGetCurrent)            \
  X(cuCtxPushCurrent_v2)        \
  X(cuCtxPopCurrent_v2)         \
  X(cuDevicePrimaryCtxGetState) \
  X(cuDeviceGetName)            \
  X(cuDeviceGetUuid_v2)         \
  X(cuDeviceTotalMem_v2)        \
  X(cuDeviceGetPCIBusId)        \
  X(cuDeviceGetAttribute)       \
  X(cuDeviceGetMemPool)         \
  X(cuStreamIsCapturing)        \
  X(cuMemPoolGetAttribute)      \
  X(cuPointerGetAttribute)      \
  X(cuMemGetAddressRange_v2)    \
  X(cuGetExportTable)

struct DriverCalls {
#define LEDGER_DRIVER_CALL_MEMBER(name) decltype(&::name) name;
  LEDGER_DRIVER_CALLS(LEDGER_DRIVER_CALL_MEMBER)
#undef LEDGER_DRIVER_CALL_MEMBER
};

// All null until libcuda is loaded. The returned object never changes once it is filled.
const DriverCalls& Driver();

}  // namespace ledger
