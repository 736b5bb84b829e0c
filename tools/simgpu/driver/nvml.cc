// libnvidia-ml.so.1: the node's devices as tools see them. It has no state: it asks the simulated driver, so that its
// figures are those of cuMemGetInfo.
#include "tools/simgpu/driver/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tools/simgpu/driver/export_table.h"

#define SIMGPU_NVML(function) extern "C" __attribute__((visibility("default"))) Result function

namespace simgpu::nvml {
namespace {

// Null where libcuda.so.1 is missing or a genuine one.
const ExportTable* Table() {
  static const ExportTable* const table = []() -> const ExportTable* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return nullptr;
    auto* get = reinterpret_cast<decltype(&cuGetExportTable)>(dlsym(library, "cuGetExportTable"));
    const void* found = nullptr;
    if (get == nullptr || get(&found, &kExportTableId) != CUDA_SUCCESS) return nullptr;
    return static_cast<const ExportTable*>(found);
  }();
  return table;
}

std::uint64_t Number(const char* key, std::uint64_t fallback) {
  std::uint64_t value = 0;
  return Table() != nullptr && Table()->number(key, &value) == CUDA_SUCCESS ? value : fallback;
}

int Index(DeviceHandle handle) { return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1; }
DeviceHandle Handle(int index) { return reinterpret_cast<DeviceHandle>(static_cast<std::uintptr_t>(index) + 1); }

Result Describe(int index, NodeDevice* device) {
  if (Table() == nullptr) return kDriverNotLoaded;
  device->size = sizeof *device;
  return Table()->node_device(index, device) == CUDA_SUCCESS ? kSuccess : kInvalidArgument;
}

Result Describe(DeviceHandle handle, NodeDevice* device) { return Describe(Index(handle), device); }

Result GiveText(const std::string& text, char* buffer, unsigned bytes) {
  if (buffer == nullptr) return kInvalidArgument;
  if (text.size() >= bytes) return kInsufficientSize;
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return kSuccess;
}

Result GiveNumber(unsigned* out, std::uint64_t value) {
  if (out == nullptr) return kInvalidArgument;
  *out = static_cast<unsigned>(value);
  return kSuccess;
}

std::string UuidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

// What NVML counts and CUDA doesn't: memory that the driver and the error correction keep.
std::uint64_t Reserved(const NodeDevice& device) {
  const std::uint64_t nvml = Number("nvml.total_bytes", 0);
  const std::uint64_t cuda = Number("memory.total_bytes", 0);
  return (nvml > cuda ? nvml - cuda : 0) + device.reserved_bytes;
}

template <typename Process>
Result GiveProcesses(DeviceHandle handle, unsigned* count, Process* processes) {
  if (Table() == nullptr) return kDriverNotLoaded;
  if (count == nullptr) return kInvalidArgument;
  std::vector<NodeProcess> found(256);
  std::size_t number = found.size();
  if (Table()->node_processes(Index(handle), found.data(), &number) != CUDA_SUCCESS) return kInvalidArgument;
  const unsigned room = processes == nullptr ? 0 : *count;
  *count = static_cast<unsigned>(number);
  if (number > room) return kInsufficientSize;
  for (std::size_t i = 0; i < number; ++i) {
    processes[i] = {};
    processes[i].pid = found[i].pid;
    processes[i].used = found[i].used_bytes;
    if constexpr (sizeof(Process) == sizeof(ProcessV2)) {
      processes[i].gpu_instance = processes[i].compute_instance = 0xFFFFFFFF;  // none
    }
  }
  return kSuccess;
}

Result GivePci(DeviceHandle handle, PciInfo* pci) {
  if (pci == nullptr) return kInvalidArgument;
  NodeDevice device = {};
  if (const Result result = Describe(handle, &device); result != kSuccess) return result;
  *pci = {};
  std::snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "%.15s", device.pci_bus_id);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "0000%s", device.pci_bus_id);
  pci->bus = static_cast<unsigned>(std::strtoul(device.pci_bus_id + 5, nullptr, 16));
  pci->device_id = 0x10DE;
  return kSuccess;
}

}  // namespace
}  // namespace simgpu::nvml

using namespace simgpu::nvml;  // NOLINT: the file's subject
using simgpu::NodeDevice;

// ---- The library

SIMGPU_NVML(nvmlInit_v2)() { return Table() == nullptr ? kDriverNotLoaded : kSuccess; }
SIMGPU_NVML(nvmlInit)() { return nvmlInit_v2(); }
SIMGPU_NVML(nvmlInitWithFlags)(unsigned) { return nvmlInit_v2(); }
SIMGPU_NVML(nvmlShutdown)() { return kSuccess; }

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "Success";
    case kUninitialized:
      return "Uninitialized";
    case kInvalidArgument:
      return "Invalid Argument";
    case kNotSupported:
      return "Not Supported";
    case kNotFound:
      return "Not Found";
    case kInsufficientSize:
      return "Insufficient Size";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

SIMGPU_NVML(nvmlSystemGetDriverVersion)(char* text, unsigned bytes) { return GiveText("580.00.00", text, bytes); }
SIMGPU_NVML(nvmlSystemGetNVMLVersion)(char* text, unsigned bytes) { return GiveText("13.580.00.00", text, bytes); }
SIMGPU_NVML(nvmlSystemGetCudaDriverVersion)(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = static_cast<int>(Number("driver.version", 13000));
  return kSuccess;
}
SIMGPU_NVML(nvmlSystemGetCudaDriverVersion_v2)(int* version) { return nvmlSystemGetCudaDriverVersion(version); }

// ---- Devices: those of the node, whatever CUDA_VISIBLE_DEVICES says

SIMGPU_NVML(nvmlDeviceGetCount_v2)(unsigned* count) {
  if (Table() == nullptr) return kDriverNotLoaded;
  return GiveNumber(count, static_cast<unsigned>(Table()->node_devices()));
}
SIMGPU_NVML(nvmlDeviceGetCount)(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

SIMGPU_NVML(nvmlDeviceGetHandleByIndex_v2)(unsigned index, DeviceHandle* handle) {
  NodeDevice device = {};
  if (handle == nullptr) return kInvalidArgument;
  if (const Result result = Describe(static_cast<int>(index), &device); result != kSuccess) return result;
  *handle = Handle(static_cast<int>(index));
  return kSuccess;
}
SIMGPU_NVML(nvmlDeviceGetHandleByIndex)(unsigned index, DeviceHandle* handle) {
  return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

SIMGPU_NVML(nvmlDeviceGetHandleByUUID)(const char* uuid, DeviceHandle* handle) {
  if (uuid == nullptr || handle == nullptr) return kInvalidArgument;
  NodeDevice device = {};
  for (int i = 0; Describe(i, &device) == kSuccess; ++i) {
    if (UuidText(device.uuid) != uuid) continue;
    *handle = Handle(i);
    return kSuccess;
  }
  return kNotFound;
}

SIMGPU_NVML(nvmlDeviceGetHandleByPciBusId_v2)(const char* text, DeviceHandle* handle) {
  if (text == nullptr || handle == nullptr) return kInvalidArgument;
  unsigned domain = 0;
  unsigned bus = 0;
  if (std::sscanf(text, "%x:%x:", &domain, &bus) != 2) return kInvalidArgument;
  NodeDevice device = {};
  for (int i = 0; Describe(i, &device) == kSuccess; ++i) {
    if (std::strtoul(device.pci_bus_id + 5, nullptr, 16) != bus) continue;
    *handle = Handle(i);
    return kSuccess;
  }
  return kNotFound;
}
SIMGPU_NVML(nvmlDeviceGetHandleByPciBusId)(const char* text, DeviceHandle* handle) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, handle);
}

SIMGPU_NVML(nvmlDeviceGetIndex)(DeviceHandle handle, unsigned* index) {
  return GiveNumber(index, static_cast<unsigned>(Index(handle)));
}
SIMGPU_NVML(nvmlDeviceGetMinorNumber)(DeviceHandle handle, unsigned* minor) {
  return GiveNumber(minor, static_cast<unsigned>(Index(handle)));
}

SIMGPU_NVML(nvmlDeviceGetName)(DeviceHandle, char* text, unsigned bytes) {
  const char* name = nullptr;
  if (Table() == nullptr || Table()->text("name", &name) != CUDA_SUCCESS) return kUnknown;
  return GiveText(name, text, bytes);
}

SIMGPU_NVML(nvmlDeviceGetUUID)(DeviceHandle handle, char* text, unsigned bytes) {
  NodeDevice device = {};
  if (const Result result = Describe(handle, &device); result != kSuccess) return result;
  return GiveText(UuidText(device.uuid), text, bytes);
}

SIMGPU_NVML(nvmlDeviceGetPciInfo_v3)(DeviceHandle handle, PciInfo* pci) { return GivePci(handle, pci); }
SIMGPU_NVML(nvmlDeviceGetPciInfo_v2)(DeviceHandle handle, PciInfo* pci) { return GivePci(handle, pci); }

SIMGPU_NVML(nvmlDeviceGetCudaComputeCapability)(DeviceHandle, int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return kInvalidArgument;
  *major = static_cast<int>(Number("compute_capability.major", 9));
  *minor = static_cast<int>(Number("compute_capability.minor", 0));
  return kSuccess;
}

// ---- Memory

SIMGPU_NVML(nvmlDeviceGetMemoryInfo)(DeviceHandle handle, Memory* memory) {
  if (memory == nullptr) return kInvalidArgument;
  NodeDevice device = {};
  if (const Result result = Describe(handle, &device); result != kSuccess) return result;
  // The first version counts what the driver keeps as used.
  memory->total = device.total_bytes - device.reserved_bytes + Reserved(device);
  memory->free = device.total_bytes - device.reserved_bytes - device.used_bytes;
  memory->used = memory->total - memory->free;
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetMemoryInfo_v2)(DeviceHandle handle, MemoryV2* memory) {
  if (memory == nullptr) return kInvalidArgument;
  NodeDevice device = {};
  if (const Result result = Describe(handle, &device); result != kSuccess) return result;
  memory->reserved = Reserved(device);
  memory->total = device.total_bytes - device.reserved_bytes + memory->reserved;
  memory->used = device.used_bytes;
  memory->free = memory->total - memory->reserved - memory->used;
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetComputeRunningProcesses)(DeviceHandle handle, unsigned* count, ProcessV1* processes) {
  return GiveProcesses(handle, count, processes);
}
SIMGPU_NVML(nvmlDeviceGetComputeRunningProcesses_v2)(DeviceHandle handle, unsigned* count, ProcessV2* processes) {
  return GiveProcesses(handle, count, processes);
}
SIMGPU_NVML(nvmlDeviceGetComputeRunningProcesses_v3)(DeviceHandle handle, unsigned* count, ProcessV2* processes) {
  return GiveProcesses(handle, count, processes);
}
SIMGPU_NVML(nvmlDeviceGetGraphicsRunningProcesses_v3)(DeviceHandle, unsigned* count, ProcessV2*) {
  return GiveNumber(count, 0);
}

// ---- Load, power, clocks: of a device on which nothing runs

SIMGPU_NVML(nvmlDeviceGetUtilizationRates)(DeviceHandle, Utilization* utilization) {
  if (utilization == nullptr) return kInvalidArgument;
  *utilization = {0, 0};
  return kSuccess;
}
SIMGPU_NVML(nvmlDeviceGetTemperature)(DeviceHandle, int, unsigned* celsius) { return GiveNumber(celsius, 30); }
SIMGPU_NVML(nvmlDeviceGetPowerUsage)(DeviceHandle, unsigned* milliwatts) {
  return GiveNumber(milliwatts, Number("power.limit_mw", 400'000) / 10);
}
SIMGPU_NVML(nvmlDeviceGetEnforcedPowerLimit)(DeviceHandle, unsigned* milliwatts) {
  return GiveNumber(milliwatts, Number("power.limit_mw", 400'000));
}
SIMGPU_NVML(nvmlDeviceGetPowerManagementLimit)(DeviceHandle handle, unsigned* milliwatts) {
  return nvmlDeviceGetEnforcedPowerLimit(handle, milliwatts);
}
SIMGPU_NVML(nvmlDeviceGetClockInfo)(DeviceHandle, int type, unsigned* megahertz) {
  constexpr int kMemoryClock = 2;
  const char* key = type == kMemoryClock ? "memory.clock_khz" : "clock_khz";
  return GiveNumber(megahertz, Number(key, 1'500'000) / 1000);
}
SIMGPU_NVML(nvmlDeviceGetMaxClockInfo)(DeviceHandle handle, int type, unsigned* megahertz) {
  return nvmlDeviceGetClockInfo(handle, type, megahertz);
}
SIMGPU_NVML(nvmlDeviceGetPerformanceState)(DeviceHandle, int* state) {
  if (state == nullptr) return kInvalidArgument;
  *state = 0;
  return kSuccess;
}

// ---- Links: every device reaches every other one through a switch, where the kind of GPU has NVLink at all

SIMGPU_NVML(nvmlDeviceGetP2PStatus)(DeviceHandle, DeviceHandle, int, int* status) {
  if (status == nullptr) return kInvalidArgument;
  *status = 0;  // OK
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetTopologyCommonAncestor)(DeviceHandle, DeviceHandle, int* level) {
  if (level == nullptr) return kInvalidArgument;
  *level = 40;  // NVML_TOPOLOGY_NODE
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetNvLinkState)(DeviceHandle, unsigned link, unsigned* active) {
  if (link >= Number("nvlink.links", 0)) return kNotSupported;
  return GiveNumber(active, 1);
}

SIMGPU_NVML(nvmlDeviceGetNvLinkVersion)(DeviceHandle, unsigned link, unsigned* version) {
  if (link >= Number("nvlink.links", 0)) return kNotSupported;
  return GiveNumber(version, Number("compute_capability.major", 9) >= 9 ? 4 : 3);
}

SIMGPU_NVML(nvmlDeviceGetNvLinkCapability)(DeviceHandle, unsigned link, int, unsigned* result) {
  if (link >= Number("nvlink.links", 0)) return kNotSupported;
  return GiveNumber(result, 1);
}

SIMGPU_NVML(nvmlDeviceGetNvLinkRemoteDeviceType)(DeviceHandle, unsigned link, int* type) {
  if (type == nullptr) return kInvalidArgument;
  if (link >= Number("nvlink.links", 0)) return kNotSupported;
  *type = 2;  // NVML_NVLINK_DEVICE_TYPE_SWITCH
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)(DeviceHandle, unsigned link, PciInfo* pci) {
  if (pci == nullptr) return kInvalidArgument;
  if (link >= Number("nvlink.links", 0)) return kNotSupported;
  *pci = {};
  pci->bus = 0xF0 + link % 4;  // four switches
  std::snprintf(pci->bus_id_legacy, sizeof pci->bus_id_legacy, "0000:%02X:00.0", pci->bus);
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetGpuFabricInfoV)(DeviceHandle, FabricInfo* info) {
  if (info == nullptr) return kInvalidArgument;
  info->status = kSuccess;
  info->clique = 0;
  info->state = 0;  // not supported: a node of its own
  info->health = 0;
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetMigMode)(DeviceHandle, unsigned* current, unsigned* pending) {
  if (current == nullptr || pending == nullptr) return kInvalidArgument;
  *current = *pending = 0;
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetPersistenceMode)(DeviceHandle, int* mode) {
  if (mode == nullptr) return kInvalidArgument;
  *mode = 1;
  return kSuccess;
}

SIMGPU_NVML(nvmlDeviceGetComputeMode)(DeviceHandle, int* mode) {
  if (mode == nullptr) return kInvalidArgument;
  *mode = 0;  // default
  return kSuccess;
}
