// The settings of the simulated platform: the one place that reads SIMGPU_* from the environment.
#pragma once

#include <cstdint>
#include <string>

namespace simgpu {

struct Options {
  std::string profile = "h100-80gb";  // SIMGPU_PROFILE: a name, or a path with a '/'
  int devices = 8;                    // SIMGPU_DEVICES: how many the node has, before CUDA_VISIBLE_DEVICES selects
  std::uint64_t memory = 0;           // SIMGPU_MEMORY: bytes of a device instead of the profile's; 0: the profile's
  std::uint64_t event_lag = 0;        // SIMGPU_EVENT_LAG: operations until an event completes; 0: at once
  std::uint64_t copy_max = 1u << 20;  // SIMGPU_COPY_MAX: larger copies into device memory are dropped
  std::string node;                   // SIMGPU_NODE: name of the state shared by the node's processes; empty: alone
  std::uint64_t timeout_s = 120;      // SIMGPU_TIMEOUT_S: bound on every wait
  std::uint64_t verbose = 0;  // SIMGPU_VERBOSE: 0 errors, 1 what is loaded and created, 2 every call of interest
};

inline constexpr int kMaxDevices = 16;

// Read once, at the first call.
const Options& GetOptions();

// Formatted like printf; prefixed with "simgpu: " and ended with a line feed, in one write. No allocation.
void Say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace simgpu
