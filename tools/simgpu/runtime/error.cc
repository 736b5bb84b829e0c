#include "tools/simgpu/runtime/error.h"

#include <algorithm>
#include <iterator>

#include "tools/simgpu/runtime/api.h"

namespace simgpu::runtime {
namespace {

struct ErrorText {
  int code;
  const char* name;
  const char* description;
};

// One line per enumerator of cudaError, in ascending order: generated from the toolkit's header.
constexpr ErrorText kErrors[] = {
#include "cuda_error_table.inc"
};

const ErrorText* Find(int code) {
  const auto* entry = std::lower_bound(std::begin(kErrors), std::end(kErrors), code,
                                       [](const ErrorText& text, int wanted) { return text.code < wanted; });
  return entry != std::end(kErrors) && entry->code == code ? entry : nullptr;
}

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

cudaError_t FromDriver(CUresult result) {
  if (result == CUDA_ERROR_CONTEXT_ALREADY_CURRENT) return cudaErrorUnknown;
  return Find(result) == nullptr ? cudaErrorUnknown : static_cast<cudaError_t>(result);
}

cudaError_t Record(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace simgpu::runtime

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = simgpu::runtime::last_error;
  simgpu::runtime::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() { return simgpu::runtime::last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  const auto* entry = simgpu::runtime::Find(error);
  return entry == nullptr ? "unrecognized error code" : entry->name;
}

const char* cudaGetErrorString(cudaError_t error) {
  const auto* entry = simgpu::runtime::Find(error);
  return entry == nullptr ? "unrecognized error code" : entry->description;
}

}  // extern "C"
