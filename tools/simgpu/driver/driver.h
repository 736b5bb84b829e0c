// What all parts of the simulated driver share: the lock, the state of initialisation, devices, and the form of an API
// function.
//
// One lock guards all state of the driver. Calls are short and a rank's calls come mostly from one thread, so nothing
// finer is worth its proof. Callbacks into the program (host functions, activity, value reads) run without it.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "tools/simgpu/driver/options.h"
#include "tools/simgpu/driver/profile.h"

// An exported driver function. Its prototype is cuda.h's, so the compiler checks the signature.
#define SIMGPU_API extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI

// First statement of a function that needs cuInit.
#define SIMGPU_ENTER() \
  if (const CUresult ready_ = ::simgpu::Ready(); ready_ != CUDA_SUCCESS) return ready_

#define SIMGPU_RETURN_IF_ERROR(expression) \
  if (const CUresult error_ = (expression); error_ != CUDA_SUCCESS) return error_

namespace simgpu {

struct Context;

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

template <typename T>
constexpr T RoundUp(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Held by every function that touches the driver's state.
class Guard {
 public:
  Guard() { Mutex().lock(); }
  ~Guard() { Mutex().unlock(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  static std::mutex& Mutex();
};

// CUDA_SUCCESS after cuInit. CUDA_ERROR_NOT_INITIALIZED before it, and for good in a child that was forked after it:
// as in life, such a child must not use CUDA.
CUresult Ready();

struct Device {
  int ordinal;                 // in this process, after CUDA_VISIBLE_DEVICES
  int physical;                // on the node
  Context* primary = nullptr;  // made at the first retain, then kept
};

// Figures of every device, and of the library itself (driver.version). Null, with a message, where the profile cannot
// be read. Works before cuInit.
const Profile* GetProfile();
std::uint64_t DeviceTotalBytes();
// What may be in use on a device by processes: total less the driver's own.
std::uint64_t DeviceLimitBytes();

// Identity of a device of the node, whether visible or not.
CUuuid PhysicalUuid(int physical);
void PhysicalPciBusId(int physical, char* text, std::size_t bytes);

int DeviceCount();
// Null where there is no such device.
Device* FindDevice(CUdevice device);

// Takes and gives back physical memory of a device.
CUresult ChargeDevice(const Device& device, std::uint64_t bytes);
void DischargeDevice(const Device& device, std::uint64_t bytes);
void DeviceMemory(const Device& device, std::uint64_t* free_bytes, std::uint64_t* total_bytes);

}  // namespace simgpu
