// The content of a ncclUniqueId: where the shared memory of a future communicator is.
//
// The maker of an id creates an anonymous memory file, and the id says under which descriptor of which process it is
// open. The ranks open it as /proc/PID/fd/FD. Nothing has a name in the file system, so nothing can be left behind,
// however the processes end; but the maker has to live until all ranks have joined, as in life, where it runs the
// bootstrap server. All ranks must see each other's /proc: one host, one pid namespace, one user.
#ifndef TOOLS_SIMGPU_NCCL_INVITATION_H_
#define TOOLS_SIMGPU_NCCL_INVITATION_H_

#include <nccl.h>

#include <cstdint>

#include "tools/simgpu/nccl/process.h"

namespace simgpu::nccl {

struct Invitation {
  char magic[16];
  ProcessIdentity maker;
  std::int32_t descriptor;
  std::uint32_t padding;
  std::uint64_t nonce;  // also the first word of the file: proves that the descriptor is still the one meant

  std::uint64_t CommunicatorHash() const;
};
static_assert(sizeof(Invitation) <= sizeof(ncclUniqueId));

ncclResult_t MakeInvitation(Invitation* invitation);

// Reads an id that came from the program.
ncclResult_t ParseInvitation(const ncclUniqueId& id, Invitation* invitation);

// Opens the memory file; the caller closes the descriptor.
ncclResult_t OpenInvitation(const Invitation& invitation, int* descriptor);

// Closes this process's copy of the maker's descriptor, if it has one. For when all ranks have joined.
void WithdrawInvitation(std::uint64_t nonce);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_INVITATION_H_
