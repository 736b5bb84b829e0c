#include "tools/simgpu/driver/export_table.h"

#include <algorithm>
#include <cstring>

#include "tools/simgpu/driver/activity.h"
#include "tools/simgpu/driver/driver.h"
#include "tools/simgpu/driver/launch.h"
#include "tools/simgpu/driver/module.h"
#include "tools/simgpu/driver/node_state.h"

namespace simgpu {
namespace {

CUresult Number(const char* key, std::uint64_t* value) {
  if (key == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Options& options = GetOptions();
  const struct {
    const char* key;
    std::uint64_t value;
  } settings[] = {
      {"option.copy_max", options.copy_max},
      {"option.timeout_s", options.timeout_s},
      {"option.verbose", options.verbose},
      {"option.event_lag", options.event_lag},
      {"option.devices", static_cast<std::uint64_t>(options.devices)},
  };
  for (const auto& setting : settings) {
    if (std::strcmp(setting.key, key) != 0) continue;
    *value = setting.value;
    return CUDA_SUCCESS;
  }
  if (GetProfile() == nullptr) return CUDA_ERROR_NOT_FOUND;
  const auto number = GetProfile()->Number(key);
  if (!number) return CUDA_ERROR_NOT_FOUND;
  *value = *number;
  return CUDA_SUCCESS;
}

CUresult Text(const char* key, const char** value) {
  if (key == nullptr || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::string* text = GetProfile() == nullptr ? nullptr : GetProfile()->Text(key);
  if (text == nullptr) return CUDA_ERROR_NOT_FOUND;
  *value = text->c_str();
  return CUDA_SUCCESS;
}

int NodeDevices() { return GetOptions().devices; }

CUresult DescribeNodeDevice(int physical, NodeDevice* device) {
  if (device == nullptr || device->size != sizeof(NodeDevice) || physical < 0 || physical >= NodeDevices()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (GetProfile() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  const Guard guard;
  NodeState* node = NodeState::Get();
  if (node == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  device->uuid = PhysicalUuid(physical);
  PhysicalPciBusId(physical, device->pci_bus_id, sizeof device->pci_bus_id);
  device->total_bytes = DeviceTotalBytes();
  device->reserved_bytes = device->total_bytes - DeviceLimitBytes();
  device->used_bytes = node->Used(physical);
  return CUDA_SUCCESS;
}

CUresult ListNodeProcesses(int physical, NodeProcess* processes, std::size_t* count) {
  if (count == nullptr || physical < 0 || physical >= NodeDevices()) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  NodeState* node = NodeState::Get();
  if (node == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  const std::vector<ProcessUse> users = node->Processes(physical);
  const std::size_t room = processes == nullptr ? 0 : *count;
  for (std::size_t i = 0; i < std::min(room, users.size()); ++i) {
    processes[i] = {static_cast<std::uint32_t>(users[i].pid), users[i].bytes};
  }
  *count = users.size();
  return users.size() <= room ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

constexpr ExportTable kTable = {
    .size = sizeof(ExportTable),
    .number = Number,
    .text = Text,
    .subscribe_activity = SubscribeActivity,
    .launches = KernelCount,
    .declare_global = DeclareGlobal,
    .node_devices = NodeDevices,
    .node_device = DescribeNodeDevice,
    .node_processes = ListNodeProcesses,
};

}  // namespace
}  // namespace simgpu

SIMGPU_API cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  if (std::memcmp(id, &simgpu::kExportTableId, sizeof *id) != 0) return CUDA_ERROR_NOT_FOUND;
  *table = &simgpu::kTable;
  return CUDA_SUCCESS;
}
