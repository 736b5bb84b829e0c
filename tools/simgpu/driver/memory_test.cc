#include <sys/resource.h>

#include <cstring>
#include <vector>

#include "tools/simgpu/driver/test_context.h"

namespace simgpu {
namespace {

std::uint64_t ResidentBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

TEST_CASE("A context costs device memory while it lives") {
  REQUIRE_OK(cuInit(0));
  CUcontext context = nullptr;
  REQUIRE(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  REQUIRE(context == nullptr);
  std::size_t free = 0, total = 0;
  REQUIRE(cuMemGetInfo(&free, &total) == CUDA_ERROR_INVALID_CONTEXT);

  REQUIRE_OK(cuDevicePrimaryCtxRetain(&context, 0));
  REQUIRE_OK(cuCtxSetCurrent(context));
  const std::uint64_t one = UsedBytes();
  REQUIRE(one == 520 * kTestMiB);
  CUcontext second = nullptr;
  REQUIRE_OK(cuCtxCreate(&second, nullptr, 0, 0));
  REQUIRE(UsedBytes() == 2 * one);
  REQUIRE_OK(cuCtxDestroy(second));
  CUcontext current = nullptr;
  REQUIRE_OK(cuCtxGetCurrent(&current));
  REQUIRE(current == context);
  REQUIRE(UsedBytes() == one);

  REQUIRE_OK(cuDevicePrimaryCtxRelease(0));
  REQUIRE(cuMemGetInfo(&free, &total) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  int active = 1;
  REQUIRE_OK(cuDevicePrimaryCtxGetState(0, nullptr, &active));
  REQUIRE(active == 0);
  REQUIRE_OK(cuCtxSetCurrent(nullptr));
}

TEST_CASE("Large allocations take whole granules, small ones share a granule") {
  const TestContext context;
  const std::uint64_t before = UsedBytes();
  CUdeviceptr large = 0;
  REQUIRE_OK(cuMemAlloc(&large, 2 * kTestMiB + 1));
  REQUIRE(UsedBytes() == before + 4 * kTestMiB);
  REQUIRE(large % (2 * kTestMiB) == 0);

  CUdeviceptr small[3] = {};
  for (CUdeviceptr& address : small) {
    REQUIRE_OK(cuMemAlloc(&address, 1000));
    REQUIRE(address % 512 == 0);
  }
  REQUIRE(UsedBytes() == before + 6 * kTestMiB);
  for (const CUdeviceptr address : small) REQUIRE_OK(cuMemFree(address));
  REQUIRE(UsedBytes() == before + 4 * kTestMiB);
  REQUIRE_OK(cuMemFree(large));
  REQUIRE(UsedBytes() == before);
}

TEST_CASE("Only what was allocated can be freed, and once") {
  const TestContext context;
  CUdeviceptr address = 0;
  REQUIRE_OK(cuMemAlloc(&address, 4 * kTestMiB));
  REQUIRE(cuMemFree(address + 512) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFree(address));
  REQUIRE(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFree(0));
  REQUIRE(cuMemAlloc(&address, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("A freed address is reused") {
  const TestContext context;
  CUdeviceptr first = 0, second = 0;
  REQUIRE_OK(cuMemAlloc(&first, 32 * kTestMiB));
  REQUIRE_OK(cuMemFree(first));
  REQUIRE_OK(cuMemAlloc(&second, 32 * kTestMiB));
  REQUIRE(second == first);
  REQUIRE_OK(cuMemFree(second));
}

TEST_CASE("A device runs out of memory at its size, and says so without taking any") {
  const TestContext context;
  std::size_t free = 0, total = 0;
  REQUIRE_OK(cuMemGetInfo(&free, &total));
  CUdeviceptr address = 42;
  REQUIRE(cuMemAlloc(&address, free + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(address == 42);
  REQUIRE(cuMemAlloc(&address, SIZE_MAX - 100) == CUDA_ERROR_OUT_OF_MEMORY);
  const std::size_t whole = free / (2 * kTestMiB) * (2 * kTestMiB);
  REQUIRE_OK(cuMemAlloc(&address, whole));
  CUdeviceptr more = 0;
  REQUIRE(cuMemAlloc(&more, 2 * kTestMiB) == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE_OK(cuMemFree(address));
  REQUIRE_OK(cuMemAlloc(&more, 2 * kTestMiB));
  REQUIRE_OK(cuMemFree(more));
}

TEST_CASE("Devices are independent") {
  const TestContext other(1);
  const std::uint64_t before = UsedBytes();
  const TestContext context(0);
  CUdeviceptr address = 0;
  REQUIRE_OK(cuMemAlloc(&address, 1024 * kTestMiB));
  REQUIRE_OK(cuCtxSetCurrent(other.get()));
  REQUIRE(UsedBytes() == before);
  int ordinal = -1;
  REQUIRE_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address));
  REQUIRE(ordinal == 0);
  REQUIRE_OK(cuMemFree(address));
}

TEST_CASE("A reset frees everything") {
  const TestContext context;
  const std::uint64_t before = UsedBytes();
  CUdeviceptr address = 0;
  void* host = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR descriptor = {};
  descriptor.Width = 1024;
  descriptor.Height = 1024;
  descriptor.Format = CU_AD_FORMAT_FLOAT;
  descriptor.NumChannels = 1;
  REQUIRE_OK(cuMemAlloc(&address, 64 * kTestMiB));
  REQUIRE_OK(cuMemAllocAsync(&address, 64 * kTestMiB, nullptr));
  REQUIRE_OK(cuMemAllocHost(&host, 4096));
  REQUIRE_OK(cuArrayCreate(&array, &descriptor));
  REQUIRE(UsedBytes() == before + (64 + 64 + 4) * kTestMiB);
  REQUIRE_OK(cuDevicePrimaryCtxReset(0));
  CUcontext again = nullptr;
  REQUIRE_OK(cuDevicePrimaryCtxRetain(&again, 0));
  REQUIRE(UsedBytes() == before);
  REQUIRE(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemFreeHost(host) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Small copies happen, large ones into device memory are dropped") {
  const TestContext context;
  CUdeviceptr device = 0;
  REQUIRE_OK(cuMemAlloc(&device, 64 * kTestMiB));
  std::vector<char> sent(2 * kTestMiB, 'x');
  std::vector<char> got(2 * kTestMiB, '?');
  REQUIRE_OK(cuMemcpyHtoD(device, sent.data(), 1000));
  REQUIRE_OK(cuMemcpyDtoD(device + 4096, device, 1000));
  REQUIRE_OK(cuMemcpyDtoH(got.data(), device + 4096, 2000));
  REQUIRE(std::string(got.data(), 1000) == std::string(1000, 'x'));
  REQUIRE(got[1000] == 0);  // never written

  REQUIRE_OK(cuMemcpyHtoD(device + 8 * kTestMiB, sent.data(), sent.size()));
  REQUIRE_OK(cuMemcpyDtoH(got.data(), device + 8 * kTestMiB, got.size()));
  REQUIRE(got == std::vector<char>(got.size(), 0));
  REQUIRE_OK(cuMemFree(device));
}

TEST_CASE("Fills happen, and zeroing gives pages back") {
  const TestContext context;
  CUdeviceptr device = 0;
  REQUIRE_OK(cuMemAlloc(&device, 1024 * kTestMiB));
  std::uint32_t value = 0;
  REQUIRE_OK(cuMemsetD32(device + 100 * 4, 0x01020304, 10));
  REQUIRE_OK(cuMemcpyDtoH(&value, device + 109 * 4, 4));
  REQUIRE(value == 0x01020304);
  REQUIRE_OK(cuMemsetD16(device, 0xBEEF, 2));
  REQUIRE_OK(cuMemcpyDtoH(&value, device, 4));
  REQUIRE(value == 0xBEEFBEEF);
  const std::uint64_t before = ResidentBytes();
  REQUIRE_OK(cuMemsetD8(device, 0, 1024 * kTestMiB));
  REQUIRE(ResidentBytes() < before + 64 * kTestMiB);
  REQUIRE_OK(cuMemcpyDtoH(&value, device + 109 * 4, 4));
  REQUIRE(value == 0);
  REQUIRE_OK(cuMemFree(device));
}

TEST_CASE("Pitched copies move rows") {
  const TestContext context;
  CUdeviceptr device = 0;
  std::size_t pitch = 0;
  REQUIRE_OK(cuMemAllocPitch(&device, &pitch, 100, 4, 4));
  REQUIRE(pitch >= 100);
  REQUIRE(pitch % 512 == 0);
  char sent[4][100];
  char got[4][100] = {};
  for (int row = 0; row < 4; ++row) std::memset(sent[row], 'a' + row, 100);
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = sent;
  copy.srcPitch = 100;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = device;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 100;
  copy.Height = 4;
  REQUIRE_OK(cuMemcpy2D(&copy));
  for (unsigned row = 0; row < 4; ++row) REQUIRE_OK(cuMemcpyDtoH(got[row], device + row * pitch, 100));
  REQUIRE(std::memcmp(sent, got, sizeof sent) == 0);
  REQUIRE_OK(cuMemFree(device));
}

TEST_CASE("Pointers are told apart") {
  const TestContext context;
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* pinned = nullptr;
  char own[256];
  REQUIRE_OK(cuMemAlloc(&device, 10'000'000));
  REQUIRE_OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  REQUIRE_OK(cuMemHostAlloc(&pinned, 4096, 0));
  REQUIRE_OK(cuMemHostRegister(own, sizeof own, 0));
  unsigned type = 0;
  bool is_managed = false;
  REQUIRE_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 9'999'999));
  REQUIRE(type == CU_MEMORYTYPE_DEVICE);
  REQUIRE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 10'000'000) ==
          CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reinterpret_cast<CUdeviceptr>(pinned)));
  REQUIRE(type == CU_MEMORYTYPE_HOST);
  REQUIRE_OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  REQUIRE(is_managed);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  REQUIRE_OK(cuMemGetAddressRange(&base, &bytes, device + 5'000'000));
  REQUIRE(base == device);
  REQUIRE(bytes == 10'000'000);
  REQUIRE(cuMemHostRegister(own + 10, 10, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  REQUIRE_OK(cuMemHostUnregister(own));
  REQUIRE(cuMemHostUnregister(own) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  REQUIRE(cuMemFree(reinterpret_cast<CUdeviceptr>(pinned)) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFreeHost(pinned));
  REQUIRE_OK(cuMemFree(managed));
  REQUIRE_OK(cuMemFree(device));
}

TEST_CASE("Code costs memory when it is first used") {
  const TestContext context;
  const std::uint64_t before = UsedBytes();
  const CUfunction function = TestKernel();
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(Launch(function));
  REQUIRE(UsedBytes() == before + 2 * kTestMiB);
  REQUIRE_OK(Launch(function));
  for (int i = 0; i < 20; ++i) REQUIRE_OK(Launch(TestKernel(("other" + std::to_string(i)).c_str())));
  REQUIRE(UsedBytes() == before + 2 * kTestMiB);  // 21 functions of 48 KiB
}

}  // namespace
}  // namespace simgpu
