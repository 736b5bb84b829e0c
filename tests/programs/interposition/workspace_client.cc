// A library that lends cuBLAS memory to work in, as frameworks do: over and over the same, and given back in between.
#include <dlfcn.h>

#include <cstdio>

#include "interpose/core/cuda_headers.h"

namespace {

constexpr std::size_t kBytes = 1 << 20;

using Matmul = decltype(&cublasLtMatmul);

cublasStatus_t Multiply(Matmul multiply, void* workspace) {
  return multiply(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                  nullptr, nullptr, workspace, kBytes, nullptr);
}

void LendTwice(cublasHandle_t handle) {
  void* workspace = nullptr;
  std::printf("malloc %d\n", cudaMalloc(&workspace, kBytes));
  for (int i = 0; i < 2; ++i) std::printf("lent %d\n", cublasSetWorkspace_v2(handle, workspace, kBytes));
  std::printf("taken back %d\n", cublasSetWorkspace_v2(handle, nullptr, 0));
  std::printf("free %d\n", cudaFree(workspace));
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void Describe() {
  cublasHandle_t handle = nullptr;
  std::printf("handle %d\n", cublasCreate_v2(&handle));
  LendTwice(handle);
  LendTwice(handle);  // at the same address, most likely
  void* workspace = nullptr;
  std::printf("malloc %d\n", cudaMalloc(&workspace, kBytes));
  std::printf("refused %d\n", cublasSetWorkspace_v2(nullptr, workspace, kBytes));

  void* const library = dlopen("libcublasLt.so.13", RTLD_NOW | RTLD_LOCAL);
  const auto found = reinterpret_cast<Matmul>(dlsym(library, "cublasLtMatmul"));
  std::printf("looked up: %s, the same again: %d\n", found == nullptr ? "null" : "found",
              found == reinterpret_cast<Matmul>(dlsym(library, "cublasLtMatmul")));
  for (int i = 0; i < 2; ++i) std::printf("looked-up multiply %d\n", Multiply(found, workspace));
  std::printf("linked multiply %d\n", Multiply(&cublasLtMatmul, workspace));
  std::printf("without a workspace %d\n", Multiply(found, nullptr));
  std::printf("free %d\n", cudaFree(workspace));
  std::printf("multiply in memory of the same address %d\n", cudaMalloc(&workspace, kBytes));
  std::printf("linked multiply %d\n", Multiply(&cublasLtMatmul, workspace));
  std::printf("free %d, handle %d\n", cudaFree(workspace), cublasDestroy_v2(handle));
}
