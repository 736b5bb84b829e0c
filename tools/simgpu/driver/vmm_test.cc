#include <sys/wait.h>
#include <unistd.h>

#include "tools/simgpu/driver/test_context.h"

namespace simgpu {
namespace {

constexpr std::size_t kGranule = 2 * kTestMiB;

CUmemAllocationProp OnDevice(int device, bool exportable = false) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  if (exportable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

void Allow(CUdeviceptr address, std::size_t bytes) {
  const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  REQUIRE_OK(cuMemSetAccess(address, bytes, &access, 1));
}

TEST_CASE("Physical memory lives until the last handle and the last mapping are gone") {
  const TestContext context;
  const std::uint64_t before = UsedBytes();
  const CUmemAllocationProp properties = OnDevice(0);
  CUdeviceptr address = 0;
  REQUIRE_OK(cuMemAddressReserve(&address, 10 * kGranule, 0, 0, 0));
  REQUIRE(UsedBytes() == before);
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE_OK(cuMemCreate(&handle, 3 * kGranule, &properties, 0));
  REQUIRE(UsedBytes() == before + 3 * kGranule);
  REQUIRE_OK(cuMemMap(address, 3 * kGranule, 0, handle, 0));
  Allow(address, 3 * kGranule);
  REQUIRE_OK(cuMemRelease(handle));
  REQUIRE(UsedBytes() == before + 3 * kGranule);  // still mapped
  REQUIRE(cuMemRelease(handle) == CUDA_ERROR_INVALID_VALUE);

  CUmemGenericAllocationHandle retained = 0;
  REQUIRE_OK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(address + kGranule)));
  REQUIRE_OK(cuMemUnmap(address, 3 * kGranule));
  REQUIRE(UsedBytes() == before + 3 * kGranule);  // still retained
  REQUIRE_OK(cuMemRelease(retained));
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(cuMemAddressFree(address, 10 * kGranule));
}

TEST_CASE("Mappings must lie in reserved addresses, whole, and apart from each other") {
  const TestContext context;
  const CUmemAllocationProp properties = OnDevice(0);
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE(cuMemCreate(&handle, kGranule + 1, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemAddressReserve(&address, 4 * kGranule, 0, 0, 0));
  REQUIRE_OK(cuMemCreate(&handle, 2 * kGranule, &properties, 0));
  REQUIRE(cuMemMap(address + 3 * kGranule, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemMap(address, 3 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemMap(address, 2 * kGranule, 0, handle, 0));
  REQUIRE(cuMemMap(address + kGranule, 2 * kGranule, 0, handle, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemUnmap(address, kGranule) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemAddressFree(address, 4 * kGranule) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemUnmap(address, 2 * kGranule));
  REQUIRE_OK(cuMemRelease(handle));
  REQUIRE_OK(cuMemAddressFree(address, 4 * kGranule));
}

TEST_CASE("Two mappings of one handle show the same memory") {
  const TestContext context;
  const CUmemAllocationProp properties = OnDevice(0);
  const std::uint64_t before = UsedBytes();
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE_OK(cuMemAddressReserve(&address, 2 * kGranule, 0, 0, 0));
  REQUIRE_OK(cuMemCreate(&handle, kGranule, &properties, 0));
  REQUIRE_OK(cuMemMap(address, kGranule, 0, handle, 0));
  int value = 17;
  REQUIRE_OK(cuMemcpyHtoD(address + 100, &value, sizeof value));  // before there are two
  REQUIRE_OK(cuMemMap(address + kGranule, kGranule, 0, handle, 0));
  Allow(address, 2 * kGranule);
  int got = 0;
  REQUIRE_OK(cuMemcpyDtoH(&got, address + kGranule + 100, sizeof got));
  REQUIRE(got == 17);
  value = 18;
  REQUIRE_OK(cuMemcpyHtoD(address + kGranule + 200, &value, sizeof value));
  REQUIRE_OK(cuMemcpyDtoH(&got, address + 200, sizeof got));
  REQUIRE(got == 18);
  REQUIRE_OK(cuMemsetD8(address, 0, kGranule));  // zeroing reaches both as well
  REQUIRE_OK(cuMemcpyDtoH(&got, address + kGranule + 200, sizeof got));
  REQUIRE(got == 0);
  REQUIRE(UsedBytes() == before + kGranule);
  REQUIRE_OK(cuMemUnmap(address, 2 * kGranule));
  REQUIRE_OK(cuMemRelease(handle));
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(cuMemAddressFree(address, 2 * kGranule));
}

TEST_CASE("Exported memory is charged once, and seen by the importer") {
  const TestContext context;
  const CUmemAllocationProp properties = OnDevice(0, true);
  const std::uint64_t before = UsedBytes();
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  int fd = -1;
  REQUIRE_OK(cuMemAddressReserve(&address, 2 * kGranule, 0, 0, 0));
  REQUIRE_OK(cuMemCreate(&handle, kGranule, &properties, 0));
  REQUIRE_OK(cuMemMap(address, kGranule, 0, handle, 0));
  Allow(address, kGranule);
  const int value = 23;
  REQUIRE_OK(cuMemcpyHtoD(address, &value, sizeof value));
  REQUIRE_OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  REQUIRE_OK(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                                            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  REQUIRE(UsedBytes() == before + kGranule);
  CUmemAllocationProp found = {};
  REQUIRE_OK(cuMemGetAllocationPropertiesFromHandle(&found, imported));
  REQUIRE(found.location.id == 0);
  REQUIRE_OK(cuMemMap(address + kGranule, kGranule, 0, imported, 0));
  Allow(address + kGranule, kGranule);
  int got = 0;
  REQUIRE_OK(cuMemcpyDtoH(&got, address + kGranule, sizeof got));
  REQUIRE(got == 23);
  REQUIRE_OK(cuMemUnmap(address, 2 * kGranule));
  REQUIRE_OK(cuMemRelease(imported));
  REQUIRE(UsedBytes() == before + kGranule);
  REQUIRE_OK(cuMemRelease(handle));
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(cuMemAddressFree(address, 2 * kGranule));

  REQUIRE(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(std::intptr_t{0}),
                                         CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Physical memory on the host costs nothing on the device") {
  const TestContext context;
  const std::uint64_t before = UsedBytes();
  CUmemAllocationProp properties = OnDevice(0);
  properties.location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0};
  CUmemGenericAllocationHandle handle = 0;
  REQUIRE_OK(cuMemCreate(&handle, kGranule, &properties, 0));
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(cuMemRelease(handle));
}

}  // namespace
}  // namespace simgpu
