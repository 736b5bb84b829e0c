#include "tools/simgpu/driver/ipc.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tools/simgpu/driver/address_space.h"
#include "tools/simgpu/driver/context.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kMagic = 0x63706975706d6973;  // "simpuipc"

// What CUipcMemHandle holds. The importer reaches the exporter's file through /proc, so nothing is left behind when
// either dies.
struct MemHandle {
  std::uint64_t magic;
  std::int32_t pid;
  std::int32_t fd;
  std::uint64_t bytes;
  std::uint64_t extent;
  std::uint64_t address;  // in the exporter
  std::int32_t physical;
};
static_assert(sizeof(MemHandle) <= sizeof(CUipcMemHandle));

CUresult Open(CUdeviceptr* address, const CUipcMemHandle& handle) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(RequireContext(&context));
  MemHandle shared;
  std::memcpy(&shared, &handle, sizeof shared);
  if (address == nullptr || shared.magic != kMagic) return CUDA_ERROR_INVALID_VALUE;
  if (shared.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;  // as in life: not in the process that made it
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/fd/%d", shared.pid, shared.fd);
  const int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    Say("cuIpcOpenMemHandle: cannot open %s; has process %d ended?", path, shared.pid);
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Guard guard;
  const std::uintptr_t found = ReserveAddresses(shared.extent, GetProfile()->Get("memory.granularity"));
  const bool mapped = found != 0 && MapShared(found, shared.extent, fd, 0);
  close(fd);
  if (!mapped) {
    if (found != 0) ReleaseAddresses(found, shared.extent);
    return CUDA_ERROR_MAP_FAILED;
  }
  AddAllocation({.address = found,
                 .bytes = shared.bytes,
                 .kind = MemoryKind::kPeer,
                 .context = context,
                 .device = context->device,
                 .extent = shared.extent});
  *address = found;
  return CUDA_SUCCESS;
}

}  // namespace

void StopSharing(const Allocation& allocation) {
  UnmapShared(allocation.address, allocation.extent);
  close(allocation.shared_fd);
}

void ClosePeer(Allocation* allocation) {
  const Allocation gone = *allocation;
  RemoveAllocation(gone.address);
  UnmapShared(gone.address, gone.extent);
  ReleaseAddresses(gone.address, gone.extent);
}

}  // namespace simgpu

using simgpu::Allocation;
using simgpu::Guard;
using simgpu::MemoryKind;

SIMGPU_API cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Allocation* allocation = simgpu::FindAllocation(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::kLinear) return CUDA_ERROR_INVALID_VALUE;
  if (allocation->in_chunk) return CUDA_ERROR_NOT_SUPPORTED;  // small allocations share a chunk that moves with none
  if (allocation->shared_fd < 0) {
    allocation->shared_fd = simgpu::ShareRange(allocation->address, allocation->extent);
    if (allocation->shared_fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const simgpu::MemHandle shared = {.magic = simgpu::kMagic,
                                    .pid = getpid(),
                                    .fd = allocation->shared_fd,
                                    .bytes = allocation->bytes,
                                    .extent = allocation->extent,
                                    .address = allocation->address,
                                    .physical = allocation->device->physical};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &shared, sizeof shared);
  return CUDA_SUCCESS;
}

SIMGPU_API cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {  // v2
  if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Open(address, handle);
}

#undef cuIpcOpenMemHandle
SIMGPU_API cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}

SIMGPU_API cuIpcCloseMemHandle(CUdeviceptr address) {
  SIMGPU_ENTER();
  const Guard guard;
  Allocation* allocation = simgpu::FindAllocationAt(address);
  if (allocation == nullptr || allocation->kind != MemoryKind::kPeer) return CUDA_ERROR_INVALID_VALUE;
  simgpu::ClosePeer(allocation);
  return CUDA_SUCCESS;
}
