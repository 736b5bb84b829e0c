#include "tools/simgpu/driver/nvml.h"

#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "tools/simgpu/driver/test_context.h"

namespace simgpu::nvml {
extern "C" {
Result nvmlInit_v2();
Result nvmlDeviceGetCount_v2(unsigned*);
Result nvmlDeviceGetHandleByIndex_v2(unsigned, DeviceHandle*);
Result nvmlDeviceGetHandleByUUID(const char*, DeviceHandle*);
Result nvmlDeviceGetHandleByPciBusId_v2(const char*, DeviceHandle*);
Result nvmlDeviceGetUUID(DeviceHandle, char*, unsigned);
Result nvmlDeviceGetMemoryInfo(DeviceHandle, Memory*);
Result nvmlDeviceGetMemoryInfo_v2(DeviceHandle, MemoryV2*);
Result nvmlDeviceGetComputeRunningProcesses(DeviceHandle, unsigned*, ProcessV1*);
Result nvmlDeviceGetComputeRunningProcesses_v3(DeviceHandle, unsigned*, ProcessV2*);
Result nvmlDeviceGetEccMode();
}
namespace {

TEST_CASE("NVML and the driver agree on memory") {
  REQUIRE(nvmlInit_v2() == kSuccess);
  const TestContext context;
  CUdeviceptr address = 0;
  REQUIRE_OK(cuMemAlloc(&address, 1024 * kTestMiB));
  DeviceHandle device = nullptr;
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(0, &device) == kSuccess);
  std::size_t free = 0, total = 0;
  REQUIRE_OK(cuMemGetInfo(&free, &total));
  Memory v1 = {};
  MemoryV2 v2 = {};
  REQUIRE(nvmlDeviceGetMemoryInfo(device, &v1) == kSuccess);
  REQUIRE(nvmlDeviceGetMemoryInfo_v2(device, &v2) == kSuccess);
  REQUIRE(v1.free == free);
  REQUIRE(v1.total == 81559 * kTestMiB);
  REQUIRE(v1.used == v1.total - free);
  REQUIRE(v2.used == total - free);
  REQUIRE(v2.total == v2.reserved + v2.used + v2.free);

  unsigned count = 0;
  REQUIRE(nvmlDeviceGetComputeRunningProcesses(device, &count, nullptr) == kInsufficientSize);
  REQUIRE(count == 1);
  ProcessV1 one[1] = {};
  REQUIRE(nvmlDeviceGetComputeRunningProcesses(device, &count, one) == kSuccess);
  REQUIRE(one[0].pid == static_cast<unsigned>(getpid()));
  REQUIRE(one[0].used == total - free);
  std::vector<ProcessV2> more(4);
  count = 4;
  REQUIRE(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, more.data()) == kSuccess);
  REQUIRE(count == 1);
  REQUIRE(more[0].gpu_instance == 0xFFFFFFFF);
  REQUIRE_OK(cuMemFree(address));
}

TEST_CASE("NVML finds the driver's devices by any name") {
  REQUIRE_OK(cuInit(0));
  char bus[20];
  REQUIRE_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 5));
  DeviceHandle by_bus = nullptr, by_index = nullptr, by_uuid = nullptr;
  REQUIRE(nvmlDeviceGetHandleByPciBusId_v2(bus, &by_bus) == kSuccess);
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(5, &by_index) == kSuccess);
  REQUIRE(by_bus == by_index);
  char uuid[80];
  REQUIRE(nvmlDeviceGetUUID(by_bus, uuid, sizeof uuid) == kSuccess);
  REQUIRE(std::strlen(uuid) == 40);
  REQUIRE(nvmlDeviceGetHandleByUUID(uuid, &by_uuid) == kSuccess);
  REQUIRE(by_uuid == by_bus);
  unsigned count = 0;
  REQUIRE(nvmlDeviceGetCount_v2(&count) == kSuccess);
  REQUIRE(nvmlDeviceGetHandleByIndex_v2(count, &by_index) == kInvalidArgument);
  REQUIRE(nvmlDeviceGetUUID(by_bus, uuid, 10) == kInsufficientSize);
  REQUIRE(nvmlDeviceGetEccMode() == kNotSupported);
}

}  // namespace
}  // namespace simgpu::nvml
