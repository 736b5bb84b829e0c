#include "tools/simgpu/driver/test_context.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kChunk = 32 * kTestMiB;

cuuint64_t Get(CUmemoryPool pool, CUmemPool_attribute attribute) {
  cuuint64_t value = 0;
  REQUIRE_OK(cuMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

TEST_CASE("A pool takes chunks, and gives back what exceeds its threshold at a synchronisation") {
  const TestContext context;
  const std::uint64_t before = UsedBytes();
  CUmemoryPool pool = nullptr;
  REQUIRE_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  CUdeviceptr a = 0, b = 0, c = 0;
  REQUIRE_OK(cuMemAllocAsync(&a, 1000, nullptr));
  REQUIRE_OK(cuMemAllocAsync(&b, 10 * kTestMiB, nullptr));
  REQUIRE(UsedBytes() == before + kChunk);
  REQUIRE_OK(cuMemAllocAsync(&c, 40 * kTestMiB, nullptr));
  REQUIRE(UsedBytes() == before + 3 * kChunk);
  REQUIRE(Get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 3 * kChunk);
  REQUIRE(Get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 1024 + 50 * kTestMiB);
  REQUIRE_OK(cuMemFreeAsync(a, nullptr));
  REQUIRE_OK(cuMemFreeAsync(c, nullptr));
  REQUIRE(UsedBytes() == before + 3 * kChunk);  // until a synchronisation
  REQUIRE(Get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) == 10 * kTestMiB);
  REQUIRE(Get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 1024 + 50 * kTestMiB);
  REQUIRE_OK(cuStreamSynchronize(nullptr));
  REQUIRE(UsedBytes() == before + kChunk);
  REQUIRE_OK(cuMemFreeAsync(b, nullptr));
  cuuint64_t threshold = UINT64_MAX;
  REQUIRE_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  REQUIRE_OK(cuStreamSynchronize(nullptr));
  REQUIRE(UsedBytes() == before + kChunk);
  REQUIRE(Get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == 3 * kChunk);
  cuuint64_t zero = 0;
  REQUIRE_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
  REQUIRE(Get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == kChunk);
  REQUIRE_OK(cuMemPoolTrimTo(pool, 0));
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &zero));
}

TEST_CASE("Freed pool memory is reused before the pool grows") {
  const TestContext context;
  CUdeviceptr a = 0, b = 0;
  REQUIRE_OK(cuMemAllocAsync(&a, 20 * kTestMiB, nullptr));
  REQUIRE_OK(cuMemFreeAsync(a, nullptr));
  REQUIRE_OK(cuMemAllocAsync(&b, 20 * kTestMiB, nullptr));
  REQUIRE(a == b);
  REQUIRE(cuMemFreeAsync(b + 512, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFree(b));  // allowed
}

TEST_CASE("A pool of one's own") {
  const TestContext context;
  const std::uint64_t before = UsedBytes();
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  properties.maxSize = 2 * kChunk;
  CUmemoryPool pool = nullptr;
  CUdeviceptr a = 0, b = 0;
  REQUIRE_OK(cuMemPoolCreate(&pool, &properties));
  REQUIRE_OK(cuMemAllocFromPoolAsync(&a, 40 * kTestMiB, pool, nullptr));
  REQUIRE(cuMemAllocFromPoolAsync(&b, 40 * kTestMiB, pool, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CUmemoryPool found = nullptr;
  REQUIRE_OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a));
  REQUIRE(found == pool);
  // The pool goes with its last allocation.
  REQUIRE_OK(cuMemPoolDestroy(pool));
  REQUIRE(UsedBytes() == before + 2 * kChunk);
  REQUIRE_OK(cuMemFreeAsync(a, nullptr));
  REQUIRE(UsedBytes() == before);
  REQUIRE(cuMemPoolTrimTo(pool, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  REQUIRE(cuMemPoolDestroy(pool) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("When memory is short, unused pool memory is given back first") {
  const TestContext context;
  CUmemoryPool pool = nullptr;
  cuuint64_t threshold = UINT64_MAX;
  REQUIRE_OK(cuDeviceGetDefaultMemPool(&pool, 0));
  REQUIRE_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CUdeviceptr a = 0, b = 0;
  REQUIRE_OK(cuMemAllocAsync(&a, std::size_t{50} << 30, nullptr));
  REQUIRE_OK(cuMemFreeAsync(a, nullptr));
  REQUIRE_OK(cuMemAllocAsync(&b, std::size_t{60} << 30, nullptr));
  REQUIRE_OK(cuMemFreeAsync(b, nullptr));
  threshold = 0;
  REQUIRE_OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
}

}  // namespace
}  // namespace simgpu
