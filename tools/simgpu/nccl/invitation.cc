#include "tools/simgpu/nccl/invitation.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <vector>

#include "tools/simgpu/nccl/error.h"
#include "tools/simgpu/nccl/segment.h"

namespace simgpu::nccl {
namespace {

constexpr char kMagic[16] = "simgpu nccl 1";

struct Open {
  std::uint64_t nonce;
  int descriptor;
};

// What this process, or the one it was forked from, still holds open for ranks to come. Never destroyed, since
// programs use NCCL from their exit handlers.
struct OpenInvitations {
  std::mutex mutex;
  std::vector<Open> list;
};

OpenInvitations& Invitations() {
  static auto* const invitations = new OpenInvitations;
  return *invitations;
}

// Closes those that all ranks have accepted. A launcher that makes ids for its children isn't a rank itself, so nobody
// but the next call of MakeInvitation can do it there.
void CloseAccepted(std::vector<Open>& list) {
  std::erase_if(list, [](const Open& open) {
    SegmentHeader header;
    const bool complete = pread(open.descriptor, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                          header.rank_count > 0 && header.joined == header.rank_count;
    if (complete) close(open.descriptor);
    return complete;
  });
}

}  // namespace

std::uint64_t Invitation::CommunicatorHash() const {
  // Finaliser of splitmix64: neighbouring ids get unrelated hashes.
  std::uint64_t hash = nonce + 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

ncclResult_t MakeInvitation(Invitation* invitation) {
  std::uint64_t nonce = 0;
  if (getrandom(&nonce, sizeof nonce, 0) != sizeof nonce) {
    return Fail(ncclSystemError, "cannot make a unique id: getrandom: %s", std::strerror(errno));
  }
  const int descriptor = memfd_create("simgpu-nccl", MFD_CLOEXEC);
  SegmentHeader header{};
  header.nonce = nonce;
  if (descriptor < 0 || pwrite(descriptor, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) {
    const int error = errno;
    if (descriptor >= 0) close(descriptor);
    return Fail(ncclSystemError, "cannot make a unique id: memory file: %s", std::strerror(error));
  }
  OpenInvitations& invitations = Invitations();
  std::lock_guard lock(invitations.mutex);
  CloseAccepted(invitations.list);
  invitations.list.push_back({.nonce = nonce, .descriptor = descriptor});
  *invitation = {.magic = {}, .maker = CurrentProcess(), .descriptor = descriptor, .padding = 0, .nonce = nonce};
  std::memcpy(invitation->magic, kMagic, sizeof kMagic);
  return ncclSuccess;
}

ncclResult_t ParseInvitation(const ncclUniqueId& id, Invitation* invitation) {
  std::memcpy(invitation, &id, sizeof *invitation);
  if (std::memcmp(invitation->magic, kMagic, sizeof kMagic) != 0) {
    return Fail(ncclInvalidArgument,
                "the unique id is not one of this library's: expected the 128 bytes that ncclGetUniqueId gave in a "
                "process of this host");
  }
  return ncclSuccess;
}

ncclResult_t OpenInvitation(const Invitation& invitation, int* descriptor) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", invitation.maker.pid, invitation.descriptor);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  std::uint64_t nonce = 0;
  if (fd < 0 || pread(fd, &nonce, sizeof nonce, 0) != sizeof nonce || nonce != invitation.nonce) {
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!IsAlive(invitation.maker)) {
      return Fail(ncclSystemError,
                  "cannot join the communicator: the process that made its unique id (pid %d) is gone; it has to live "
                  "until all ranks have joined",
                  invitation.maker.pid);
    }
    return Fail(ncclSystemError,
                "cannot join the communicator through %s (%s): its ranks have all joined already, or this process may "
                "not look into pid %d (another user or pid namespace)",
                path, fd < 0 ? std::strerror(error) : "another file", invitation.maker.pid);
  }
  *descriptor = fd;
  return ncclSuccess;
}

void WithdrawInvitation(std::uint64_t nonce) {
  OpenInvitations& invitations = Invitations();
  std::lock_guard lock(invitations.mutex);
  std::erase_if(invitations.list, [nonce](const Open& open) {
    if (open.nonce == nonce) close(open.descriptor);
    return open.nonce == nonce;
  });
}

}  // namespace simgpu::nccl
