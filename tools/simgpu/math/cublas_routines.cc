// cuBLAS's routines: each launches one kernel.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <string>
#include <string_view>

#include "tools/simgpu/math/cublas_handle.h"
#include "tools/simgpu/math/kernels.h"

namespace simgpu::math {
namespace {

// "cublasSgemm_v2" runs "simgpu_sgemm_kernel": profilers tell matrix products by "gemm" in lower case.
std::string KernelName(std::string_view routine) {
  constexpr std::string_view kPrefix = "cublas";
  constexpr std::string_view kVersionSuffix = "_v2";
  routine.remove_prefix(kPrefix.size());
  if (routine.ends_with(kVersionSuffix)) routine.remove_suffix(kVersionSuffix.size());
  std::string name = "simgpu_";
  std::transform(routine.begin(), routine.end(), std::back_inserter(name),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name + "_kernel";
}

}  // namespace

cublasStatus_t RunCublas(cublasHandle_t handle, const char* routine) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  return FromCuda(LaunchKernel(KernelName(routine), handle->stream));
}

}  // namespace simgpu::math

// The definitions keep the header's parameter names, and use only the first.
#pragma GCC diagnostic ignored "-Wunused-parameter"
using simgpu::math::RunCublas;

extern "C" {
#include "cublas_routines.inc"
}
