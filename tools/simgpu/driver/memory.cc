#include "tools/simgpu/driver/memory.h"

#include <map>
#include <vector>

#include "tools/simgpu/driver/address_space.h"
#include "tools/simgpu/driver/array.h"
#include "tools/simgpu/driver/heap.h"
#include "tools/simgpu/driver/host_memory.h"
#include "tools/simgpu/driver/ipc.h"
#include "tools/simgpu/driver/pool.h"

namespace simgpu {
namespace {

constexpr std::size_t kAlignment = 512;  // of small allocations; cuMemAlloc promises 256 and gives 512

std::map<std::uintptr_t, Allocation>& Allocations() {
  static auto* allocations = new std::map<std::uintptr_t, Allocation>;
  return *allocations;
}

ChunkHeap& ChunksOf(Context* context) {
  static auto* heaps = new std::map<Context*, ChunkHeap>;
  return (*heaps)[context];
}

// Takes physical memory and addresses for it.
CUresult Take(const Device& device, std::size_t bytes, std::uintptr_t* address) {
  SIMGPU_RETURN_IF_ERROR(ChargeDevice(device, bytes));
  *address = ReserveAddresses(bytes, GetProfile()->Get("memory.granularity"));
  if (*address != 0) return CUDA_SUCCESS;
  DischargeDevice(device, bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult AllocateSmall(Context* context, std::size_t bytes, MemoryKind kind, std::uintptr_t* address) {
  ChunkHeap& chunks = ChunksOf(context);
  const std::size_t size = RoundUp(bytes, kAlignment);
  *address = chunks.Allocate(size);
  if (*address == 0) {
    const std::size_t chunk = GetProfile()->Get("memory.granularity");
    std::uintptr_t base = 0;
    SIMGPU_RETURN_IF_ERROR(Take(*context->device, chunk, &base));
    chunks.AddChunk({base, chunk});
    *address = chunks.Allocate(size);
  }
  AddAllocation({.address = *address,
                 .bytes = bytes,
                 .kind = kind,
                 .context = context,
                 .device = context->device,
                 .in_chunk = true});
  return CUDA_SUCCESS;
}

}  // namespace

Allocation* AddAllocation(const Allocation& allocation) {
  static std::uint64_t last_id = 0;
  Allocation& added = Allocations()[allocation.address];
  added = allocation;
  added.id = ++last_id;
  return &added;
}

void RemoveAllocation(std::uintptr_t address) { Allocations().erase(address); }

Allocation* FindAllocation(std::uintptr_t address) {
  auto& allocations = Allocations();
  auto found = allocations.upper_bound(address);
  if (found == allocations.begin()) return nullptr;
  --found;
  return address - found->first < found->second.bytes ? &found->second : nullptr;
}

Allocation* FindAllocationAt(std::uintptr_t address) {
  const auto found = Allocations().find(address);
  return found == Allocations().end() ? nullptr : &found->second;
}

CUresult AllocateLinear(Context* context, std::size_t bytes, MemoryKind kind, CUdeviceptr* address) {
  std::uintptr_t found = 0;
  if (bytes <= GetProfile()->Get("memory.small_limit") && kind != MemoryKind::kManaged) {
    SIMGPU_RETURN_IF_ERROR(AllocateSmall(context, bytes, kind, &found));
  } else {
    if (bytes > DeviceTotalBytes() && kind != MemoryKind::kManaged) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::size_t extent = RoundUp(bytes, static_cast<std::size_t>(GetProfile()->Get("memory.granularity")));
    SIMGPU_RETURN_IF_ERROR(Take(*context->device, extent, &found));
    AddAllocation({.address = found,
                   .bytes = bytes,
                   .kind = kind,
                   .context = context,
                   .device = context->device,
                   .extent = extent,
                   .charged = extent});
  }
  *address = found;
  return CUDA_SUCCESS;
}

void FreeLinear(Allocation* allocation) {
  const Allocation gone = *allocation;
  RemoveAllocation(gone.address);
  if (gone.in_chunk) {
    ChunkHeap& chunks = ChunksOf(gone.context);
    const std::size_t size = RoundUp(gone.bytes, kAlignment);
    ZeroRange(gone.address, size);
    chunks.Free(gone.address, size);
    while (const auto chunk = chunks.RemoveEmptyChunk()) {
      DischargeDevice(*gone.device, chunk->bytes);
      ReleaseAddresses(chunk->base, chunk->bytes);
    }
    return;
  }
  if (gone.shared_fd >= 0) StopSharing(gone);
  DischargeDevice(*gone.device, gone.charged);
  ReleaseAddresses(gone.address, gone.extent);
}

void FreeMemoryOf(Context* context) {
  std::vector<std::uintptr_t> owned;
  for (const auto& [address, allocation] : Allocations()) {
    if (allocation.context == context) owned.push_back(address);
  }
  for (const std::uintptr_t address : owned) {
    Allocation* allocation = FindAllocationAt(address);
    switch (allocation->kind) {
      case MemoryKind::kLinear:
      case MemoryKind::kManaged:
      case MemoryKind::kGlobal:
        FreeLinear(allocation);
        break;
      case MemoryKind::kHost:
      case MemoryKind::kRegistered:
        FreeHost(allocation);
        break;
      case MemoryKind::kAsync:
      case MemoryKind::kGraph:
        FreeToPool(allocation);
        break;
      case MemoryKind::kPeer:
        ClosePeer(allocation);
        break;
      case MemoryKind::kMapped:
        break;  // belongs to no context
    }
  }
  FreeArraysOf(context);
  if (context->primary) ReleasePoolsOf(context->device);
}

}  // namespace simgpu

using simgpu::Allocation;
using simgpu::Context;
using simgpu::Guard;
using simgpu::MemoryKind;

SIMGPU_API cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return simgpu::AllocateLinear(context, bytes, MemoryKind::kLinear, address);
}

SIMGPU_API cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (address == nullptr || pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t row = simgpu::RoundUp(width, simgpu::kAlignment);
  if (row < width || height > SIZE_MAX / row) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  SIMGPU_RETURN_IF_ERROR(simgpu::AllocateLinear(context, row * height, MemoryKind::kLinear, address));
  *pitch = row;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned attach = flags & ~static_cast<unsigned>(CU_MEM_ATTACH_SINGLE);
  if (attach != CU_MEM_ATTACH_GLOBAL && attach != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  // Counted as if it were all resident on the device: nothing here tells which pages a kernel would touch.
  return simgpu::AllocateLinear(context, bytes, MemoryKind::kManaged, address);
}

SIMGPU_API cuMemFree(CUdeviceptr address) {
  SIMGPU_ENTER();
  if (address == 0) return CUDA_SUCCESS;
  const Guard guard;
  Allocation* allocation = simgpu::FindAllocationAt(address);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (allocation->kind) {
    case MemoryKind::kLinear:
    case MemoryKind::kManaged:
      simgpu::FreeLinear(allocation);
      return CUDA_SUCCESS;
    case MemoryKind::kAsync:
    case MemoryKind::kGraph:
      simgpu::FreeToPool(allocation);  // allowed in life: it synchronises first
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (free_bytes == nullptr || total_bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  std::uint64_t free = 0;
  std::uint64_t total = 0;
  simgpu::DeviceMemory(*context->device, &free, &total);
  *free_bytes = free;
  *total_bytes = total;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemGetAddressRange(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  SIMGPU_ENTER();
  const Guard guard;
  const Allocation* allocation = simgpu::FindAllocation(address);
  if (allocation == nullptr) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = allocation->address;
  if (bytes != nullptr) *bytes = allocation->bytes;
  return CUDA_SUCCESS;
}
