// The allocations that the driver knows, of every kind, by address.
//
// Physical memory and addresses are told apart: a linear allocation takes both, a small one shares a chunk with others,
// a mapped range (virtual memory management) only refers to physical memory that was taken by cuMemCreate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/simgpu/driver/context.h"
#include "tools/simgpu/driver/driver.h"

namespace simgpu {

struct Pool;

enum class MemoryKind : std::uint8_t {
  kLinear,      // cuMemAlloc, cuMemAllocPitch
  kManaged,     // cuMemAllocManaged
  kHost,        // cuMemHostAlloc
  kRegistered,  // cuMemHostRegister: the caller's own memory
  kAsync,       // cuMemAllocAsync: out of a pool
  kGraph,       // an allocation node's memory
  kMapped,      // cuMemMap
  kPeer,        // cuIpcOpenMemHandle: another process's memory
  kGlobal,      // a loaded image's variable
};

struct Allocation {
  std::uintptr_t address;
  std::size_t bytes;  // as asked for
  MemoryKind kind;
  Context* context;           // it goes with its context; null: mapped memory
  Device* device;             // null: on the host
  std::size_t extent = 0;     // address space it takes, where it has its own
  std::uint64_t charged = 0;  // physical bytes it has taken from the device for itself
  Pool* pool = nullptr;       // kAsync
  bool in_chunk = false;      // a part of a chunk of its context
  int shared_fd = -1;         // once exported
  unsigned flags = 0;         // of the host allocation or registration
  std::uint64_t id = 0;       // never reused
};

// All below: with the lock held.
Allocation* AddAllocation(const Allocation& allocation);
void RemoveAllocation(std::uintptr_t address);
// The allocation that an address lies in; null: none.
Allocation* FindAllocation(std::uintptr_t address);
// The one that begins there.
Allocation* FindAllocationAt(std::uintptr_t address);
template <typename T>
Allocation* FindAllocation(T* pointer) {
  return FindAllocation(reinterpret_cast<std::uintptr_t>(pointer));
}

// Device memory in the sense of copies: has no pages until written to.
inline bool IsDeviceKind(MemoryKind kind) { return kind != MemoryKind::kHost && kind != MemoryKind::kRegistered; }

// A linear allocation (or a variable's memory, kGlobal) on the context's device.
CUresult AllocateLinear(Context* context, std::size_t bytes, MemoryKind kind, CUdeviceptr* address);
void FreeLinear(Allocation* allocation);
// Everything that belongs to a context, when it is destroyed or reset.
void FreeMemoryOf(Context* context);

}  // namespace simgpu
