#include "tools/simgpu/driver/host_memory.h"

#include <sys/mman.h>

#include "tools/simgpu/driver/context.h"

namespace simgpu {
namespace {

constexpr std::size_t kPage = 4096;

CUresult Allocate(void** pointer, std::size_t bytes, unsigned flags) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(RequireContext(&context));
  if (pointer == nullptr || bytes == 0 || bytes > SIZE_MAX - kPage) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t extent = RoundUp(bytes, kPage);
  void* memory = mmap(nullptr, extent, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const Guard guard;
  AddAllocation({.address = reinterpret_cast<std::uintptr_t>(memory),
                 .bytes = bytes,
                 .kind = MemoryKind::kHost,
                 .context = context,
                 .device = nullptr,
                 .extent = extent,
                 .flags = flags});
  *pointer = memory;
  return CUDA_SUCCESS;
}

// The host allocation or registration that a pointer lies in.
Allocation* FindHost(const void* pointer) {
  Allocation* allocation = FindAllocation(pointer);
  return allocation == nullptr || IsDeviceKind(allocation->kind) ? nullptr : allocation;
}

}  // namespace

void FreeHost(Allocation* allocation) {
  const Allocation gone = *allocation;
  RemoveAllocation(gone.address);
  if (gone.kind == MemoryKind::kHost) munmap(reinterpret_cast<void*>(gone.address), gone.extent);
}

}  // namespace simgpu

using simgpu::Allocation;
using simgpu::Guard;
using simgpu::MemoryKind;

SIMGPU_API cuMemAllocHost(void** pointer, size_t bytes) { return simgpu::Allocate(pointer, bytes, 0); }

SIMGPU_API cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Allocate(pointer, bytes, flags);
}

SIMGPU_API cuMemFreeHost(void* pointer) {
  SIMGPU_ENTER();
  if (pointer == nullptr) return CUDA_SUCCESS;
  const Guard guard;
  Allocation* allocation = simgpu::FindAllocationAt(reinterpret_cast<std::uintptr_t>(pointer));
  if (allocation == nullptr || allocation->kind != MemoryKind::kHost) return CUDA_ERROR_INVALID_VALUE;
  simgpu::FreeHost(allocation);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostRegister(void* pointer, size_t bytes, unsigned flags) {
  simgpu::Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (address == 0 || bytes == 0 || address + bytes < address) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (simgpu::FindAllocation(address) != nullptr || simgpu::FindAllocation(address + bytes - 1) != nullptr) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  simgpu::AddAllocation({.address = address,
                         .bytes = bytes,
                         .kind = MemoryKind::kRegistered,
                         .context = context,
                         .device = nullptr,
                         .flags = flags});
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostUnregister(void* pointer) {
  SIMGPU_ENTER();
  const Guard guard;
  Allocation* allocation = simgpu::FindAllocationAt(reinterpret_cast<std::uintptr_t>(pointer));
  if (allocation == nullptr || allocation->kind != MemoryKind::kRegistered) {
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  simgpu::FreeHost(allocation);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostGetDevicePointer(CUdeviceptr* address, void* pointer, unsigned flags) {
  SIMGPU_ENTER();
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (simgpu::FindHost(pointer) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<CUdeviceptr>(pointer);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemHostGetFlags(unsigned* flags, void* pointer) {
  SIMGPU_ENTER();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Allocation* allocation = simgpu::FindHost(pointer);
  if (allocation == nullptr || allocation->kind != MemoryKind::kHost) return CUDA_ERROR_INVALID_VALUE;
  // In life every host allocation is mapped and visible to all contexts under unified addressing.
  *flags = allocation->flags | CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}
