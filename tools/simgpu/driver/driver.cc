#include "tools/simgpu/driver/driver.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "tools/simgpu/driver/node_state.h"

namespace simgpu {
namespace {

enum class State { kFresh, kReady, kForked };
std::atomic<State> state{State::kFresh};

std::vector<Device>& Devices() {
  static auto* devices = new std::vector<Device>;
  return *devices;
}

// "GPU-" and the first digits of a device's UUID, as CUDA_VISIBLE_DEVICES may have it.
bool UuidStartsWith(int physical, const std::string& prefix) {
  const CUuuid uuid = PhysicalUuid(physical);
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text.compare(0, prefix.size(), prefix) == 0;
}

// The node's devices that CUDA_VISIBLE_DEVICES selects, in its order. Entries from the first invalid one on are
// ignored, and naming a device twice leaves none, as in life.
std::vector<int> VisibleDevices() {
  std::vector<int> visible;
  const int count = GetOptions().devices;
  const char* setting = std::getenv("CUDA_VISIBLE_DEVICES");
  if (setting == nullptr) {
    for (int i = 0; i < count; ++i) visible.push_back(i);
    return visible;
  }
  std::string rest = setting;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string entry = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    entry.erase(std::remove(entry.begin(), entry.end(), ' '), entry.end());
    int physical = -1;
    if (entry.rfind("GPU-", 0) == 0) {
      for (int i = count - 1; i >= 0; --i) physical = UuidStartsWith(i, entry) ? i : physical;
    } else if (!entry.empty() && entry.find_first_not_of("0123456789") == std::string::npos) {
      physical = std::atoi(entry.c_str());
    }
    if (physical < 0 || physical >= count) break;
    if (std::find(visible.begin(), visible.end(), physical) != visible.end()) return {};
    visible.push_back(physical);
  }
  return visible;
}

// A fork must not catch the lock in another thread's hands.
void BeforeFork() { Guard::Mutex().lock(); }
void AfterForkInParent() { Guard::Mutex().unlock(); }
void AfterForkInChild() {
  Guard::Mutex().unlock();
  if (state.load() == State::kReady) state = State::kForked;
}

}  // namespace

std::mutex& Guard::Mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

CUresult Ready() {
  return state.load(std::memory_order_acquire) == State::kReady ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

const Profile* GetProfile() {
  static const Profile* const profile = []() -> const Profile* {
    std::string error;
    std::optional<Profile> loaded = Profile::Load(Profile::Find(GetOptions().profile), &error);
    if (!loaded) {
      Say("%s", error.c_str());
      return nullptr;
    }
    return new Profile(std::move(*loaded));
  }();
  return profile;
}

std::uint64_t DeviceTotalBytes() {
  return GetOptions().memory != 0 ? GetOptions().memory : GetProfile()->Get("memory.total_bytes");
}

std::uint64_t DeviceLimitBytes() {
  const std::uint64_t total = DeviceTotalBytes();
  const std::uint64_t reserved = GetProfile()->Get("memory.reserved_bytes");
  return total > reserved ? total - reserved : 0;
}

CUuuid PhysicalUuid(int physical) {
  // Version 4, variant 1; "SIMGPU" in the middle, the device's number at the end.
  CUuuid uuid = {{0, 0, 0, 0, 0, 0, 0x40, 0, static_cast<char>(0x80), 0, 'S', 'I', 'M', 'G', 'P', 'U'}};
  uuid.bytes[9] = static_cast<char>(physical);
  uuid.bytes[0] = 'S';
  uuid.bytes[3] = static_cast<char>(physical + 1);
  return uuid;
}

void PhysicalPciBusId(int physical, char* text, std::size_t bytes) {
  std::snprintf(text, bytes, "0000:%02X:00.0", 0x10 + physical);
}

int DeviceCount() { return static_cast<int>(Devices().size()); }

Device* FindDevice(CUdevice device) {
  return device >= 0 && device < DeviceCount() ? &Devices()[static_cast<std::size_t>(device)] : nullptr;
}

CUresult ChargeDevice(const Device& device, std::uint64_t bytes) {
  return NodeState::Get()->Charge(device.physical, bytes, DeviceLimitBytes()) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void DischargeDevice(const Device& device, std::uint64_t bytes) { NodeState::Get()->Discharge(device.physical, bytes); }

void DeviceMemory(const Device& device, std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  const std::uint64_t limit = DeviceLimitBytes();
  const std::uint64_t used = NodeState::Get()->Used(device.physical);
  *free_bytes = limit > used ? limit - used : 0;
  *total_bytes = DeviceTotalBytes();
}

}  // namespace simgpu

using simgpu::Guard;

SIMGPU_API cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (simgpu::state.load() == simgpu::State::kReady) return CUDA_SUCCESS;
  if (simgpu::state.load() == simgpu::State::kForked) return CUDA_ERROR_NOT_INITIALIZED;
  if (simgpu::GetProfile() == nullptr || simgpu::NodeState::Get() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  const std::vector<int> visible = simgpu::VisibleDevices();
  if (visible.empty()) return CUDA_ERROR_NO_DEVICE;
  for (const int physical : visible) {
    simgpu::Devices().push_back({.ordinal = simgpu::DeviceCount(), .physical = physical});
  }
  pthread_atfork(simgpu::BeforeFork, simgpu::AfterForkInParent, simgpu::AfterForkInChild);
  simgpu::state.store(simgpu::State::kReady, std::memory_order_release);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (simgpu::GetProfile() == nullptr) return CUDA_ERROR_SYSTEM_NOT_READY;
  *version = static_cast<int>(simgpu::GetProfile()->Get("driver.version"));
  return CUDA_SUCCESS;
}
