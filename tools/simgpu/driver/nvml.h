// The part of NVML's ABI that the stand-in speaks. CUDA's toolkit packages don't all hold nvml.h, and this is little.
#pragma once

#include <cstdint>

namespace simgpu::nvml {

enum Result : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kUnknown = 999,
};

// Stands for one device of the node: its index + 1.
using DeviceHandle = struct DeviceTag*;

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct ProcessV1 {
  unsigned pid;
  unsigned long long used;
};
struct ProcessV2 {  // and v3
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct Utilization {
  unsigned gpu, memory;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
struct FabricInfo {  // the fields of version 2; version 3 adds one behind them
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
static_assert(sizeof(MemoryV2) == 40 && sizeof(ProcessV1) == 16 && sizeof(ProcessV2) == 24);
static_assert(sizeof(PciInfo) == 68 && sizeof(FabricInfo) == 36);

}  // namespace simgpu::nvml
