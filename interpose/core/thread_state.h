// What the recorder keeps per thread. Small, initial-exec, all zero at the start of a thread: the library can also be
// loaded late (as an NVTX injection), and the room for such variables is scarce then.
#pragma once

#include <cstdint>

namespace ledger {

struct FrameStack;

struct ThreadState {
  std::uint32_t id;                // the kernel's thread id; 0: not asked yet
  std::uint32_t scope;             // innermost open range
  std::uint32_t unrecorded_depth;  // ranges opened above `scope` that there was no room for
  std::uint32_t hook_depth;        // memory hooks that this thread is inside of
  std::uint64_t communicator;      // see ExchangeCommunicator
  bool in_recorder;                // inside our own cold work: what is called from there is not recorded
  // For torch/: modules and ops this thread is inside of, and what the allocator's trace said right before its report.
  FrameStack* frames;
  std::uint64_t traced_address;
  std::uint64_t traced_bytes;
};
static_assert(sizeof(ThreadState) <= 64);

extern constinit thread_local ThreadState t_thread __attribute__((tls_model("initial-exec")));

}  // namespace ledger
