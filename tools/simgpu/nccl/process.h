// Who a process is, across the reuse of its pid.
#ifndef TOOLS_SIMGPU_NCCL_PROCESS_H_
#define TOOLS_SIMGPU_NCCL_PROCESS_H_

#include <cstdint>

namespace simgpu::nccl {

struct ProcessIdentity {
  std::int32_t pid;
  std::uint64_t start_time;  // in clock ticks since boot, field 22 of /proc/PID/stat
};

ProcessIdentity CurrentProcess();

// False once the process has ended, also while it is a zombie that its parent has yet to collect.
bool IsAlive(const ProcessIdentity& process);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_PROCESS_H_
