// cuGetProcAddress, in both its forms.
#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/simgpu/driver/driver.h"
#include "tools/simgpu/driver/entry_points.h"

namespace simgpu {
namespace {

constexpr int kPerThreadSince = 7000;

// The newest form of an entry point that a program of this version knows.
CUresult Find(const char* name, int version, cuuint64_t flags, void** function,
              CUdriverProcAddressQueryResult* status) {
  *function = nullptr;
  constexpr cuuint64_t kBothStreams = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if ((flags & ~kBothStreams) != 0 || flags == kBothStreams) return CUDA_ERROR_INVALID_VALUE;
  const bool per_thread = flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (per_thread && version < kPerThreadSince) return CUDA_ERROR_INVALID_VALUE;

  const EntryPoint* end = kEntryPoints + kEntryPointCount;
  const EntryPoint* row = std::lower_bound(kEntryPoints, end, name, [](const EntryPoint& entry, const char* wanted) {
    return std::strcmp(entry.name, wanted) < 0;
  });
  if (row == end || std::strcmp(row->name, name) != 0) {
    *status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_ERROR_NOT_FOUND;
  }
  const EntryPoint* best = nullptr;
  for (; row != end && std::strcmp(row->name, name) == 0 && row->since <= version; ++row) best = row;
  if (best == nullptr) {
    *status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    return CUDA_ERROR_NOT_FOUND;
  }
  const auto answer = per_thread && best->per_thread != nullptr ? best->per_thread : best->function;
  *function = reinterpret_cast<void*>(answer);
  *status = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult* status) {  // v2
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = simgpu::Find(name, version, flags, function, &found);
  if (simgpu::GetOptions().verbose >= 2) {
    simgpu::Say("cuGetProcAddress(%s, %d, %llu) -> %p", name, version, static_cast<unsigned long long>(flags),
                *function);
  }
  if (status == nullptr) return result;
  *status = found;
  // Who asks for the status learns from it that nothing was found; the call itself then succeeded.
  return result == CUDA_ERROR_NOT_FOUND ? CUDA_SUCCESS : result;
}

#undef cuGetProcAddress
SIMGPU_API cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
