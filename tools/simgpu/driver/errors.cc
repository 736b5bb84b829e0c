#include "tools/simgpu/driver/errors.h"

#include <cuda.h>

#include <algorithm>

#include "tools/simgpu/driver/driver.h"

namespace simgpu {
namespace {

const Error* Find(CUresult result) {
  const Error* end = kErrors + kErrorCount;
  const Error* found =
      std::find_if(kErrors, end, [result](const Error& error) { return error.value == static_cast<int>(result); });
  return found == end ? nullptr : found;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API cuGetErrorName(CUresult result, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const simgpu::Error* error = simgpu::Find(result);
  *name = error == nullptr ? nullptr : error->name;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIMGPU_API cuGetErrorString(CUresult result, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const simgpu::Error* error = simgpu::Find(result);
  *text = error == nullptr ? nullptr : error->text;
  return error == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
