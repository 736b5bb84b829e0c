// For the tests of the driver: a current primary context, and short forms of what they ask most.
#pragma once

#include <cuda.h>

#include <catch2/catch.hpp>
#include <cstdint>

#define REQUIRE_OK(call) REQUIRE((call) == CUDA_SUCCESS)

namespace simgpu {

inline constexpr std::uint64_t kTestMiB = std::uint64_t{1} << 20;

// The primary context of a device is current while this lives.
class TestContext {
 public:
  explicit TestContext(CUdevice device = 0) : device_(device) {
    REQUIRE_OK(cuInit(0));
    REQUIRE_OK(cuDevicePrimaryCtxRetain(&context_, device_));
    REQUIRE_OK(cuCtxSetCurrent(context_));
  }
  ~TestContext() {
    cuCtxSetCurrent(nullptr);
    cuDevicePrimaryCtxReset(device_);
  }
  TestContext(const TestContext&) = delete;
  TestContext& operator=(const TestContext&) = delete;
  CUcontext get() const { return context_; }

 private:
  CUdevice device_;
  CUcontext context_ = nullptr;
};

inline std::uint64_t UsedBytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE_OK(cuMemGetInfo(&free, &total));
  return total - free;
}

// A kernel of an image that holds nothing; kernels of any name are found.
inline CUfunction TestKernel(const char* name = "kernel") {
  static const char image[16] = {};
  CUmodule module = nullptr;
  REQUIRE_OK(cuModuleLoadData(&module, image));
  CUfunction function = nullptr;
  REQUIRE_OK(cuModuleGetFunction(&function, module, name));
  return function;
}

inline CUresult Launch(CUfunction function, CUstream stream = nullptr) {
  return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr);
}

}  // namespace simgpu
