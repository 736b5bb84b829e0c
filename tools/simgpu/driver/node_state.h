// Who uses how much of which device, for all processes of a node.
//
// With SIMGPU_NODE set, the state is a file in /dev/shm that every process of that name maps: cuMemGetInfo and NVML
// then see the use of all of them, as on a real node. Otherwise the same structure is private to the process.
//
// Rules: a slot belongs to one process, which alone writes it. Anything that depends on other processes' slots (a
// charge, the search for a free slot) is done under an exclusive flock on the file, which the kernel drops when its
// holder dies. Sums need no repair after a death: a dead process's slot counts for nothing and is reused.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/simgpu/driver/options.h"

namespace simgpu {

struct ProcessUse {
  pid_t pid;
  std::uint64_t bytes;
};

class NodeState {
 public:
  // The state of this process's node; null, with a message, where the shared file cannot be had. Without
  // `register_self` it can be read (NVML needs no context).
  static NodeState* Get();

  // Takes `bytes` on a device, unless less than that is free below `limit`. 0: done, otherwise nothing was taken.
  bool Charge(int device, std::uint64_t bytes, std::uint64_t limit);
  void Discharge(int device, std::uint64_t bytes);

  // Bytes in use on the device by all processes that are alive, and by this one.
  std::uint64_t Used(int device);
  std::uint64_t UsedHere(int device) const;
  // The processes that use the device, by pid.
  std::vector<ProcessUse> Processes(int device);

 private:
  struct Slot;
  struct Shared;
  class Lock;

  NodeState() = default;
  bool Open(const char* name);
  Slot* Self();
  std::uint64_t SumAlive(int device);
  static void RemoveAtExit();

  Shared* shared_ = nullptr;
  int fd_ = -1;           // of the shared file; -1: private state
  Slot* self_ = nullptr;  // taken at the first charge
};

}  // namespace simgpu
