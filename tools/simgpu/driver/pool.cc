#include "tools/simgpu/driver/pool.h"

#include <algorithm>
#include <map>
#include <set>

#include "tools/simgpu/driver/address_space.h"
#include "tools/simgpu/driver/context.h"
#include "tools/simgpu/driver/graph_memory.h"
#include "tools/simgpu/driver/stream.h"

namespace simgpu {
namespace {

constexpr std::size_t kAlignment = 512;

struct Pools {
  std::set<Pool*> all;
  std::map<const Device*, Pool*> defaults;
  std::map<const Device*, Pool*> current;
};

Pools& GetPools() {
  static auto* pools = new Pools;
  return *pools;
}

Pool* NewPool(Device* device, bool is_default) {
  auto* pool = new Pool{.device = device, .is_default = is_default};
  GetPools().all.insert(pool);
  return pool;
}

Pool* PoolOf(CUmemoryPool handle) {
  auto* pool = reinterpret_cast<Pool*>(handle);
  const auto found = GetPools().all.find(pool);
  return found == GetPools().all.end() || pool->destroyed ? nullptr : pool;
}

CUmemoryPool HandleOf(Pool* pool) { return reinterpret_cast<CUmemoryPool>(pool); }

void GiveBack(Pool* pool, std::uint64_t keep) {
  while (pool->reserved() > keep) {
    const auto chunk = pool->heap.RemoveEmptyChunk();
    if (!chunk) return;
    DischargeDevice(*pool->device, chunk->bytes);
    ReleaseAddresses(chunk->base, chunk->bytes);
  }
}

CUresult Grow(Pool* pool, std::size_t bytes) {
  if (pool->max_bytes != 0 && pool->reserved() + bytes > pool->max_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  SIMGPU_RETURN_IF_ERROR(ChargeDevice(*pool->device, bytes));
  const std::uintptr_t base = ReserveAddresses(bytes, GetProfile()->Get("memory.granularity"));
  if (base == 0) {
    DischargeDevice(*pool->device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool->heap.AddChunk({base, bytes});
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved());
  return CUDA_SUCCESS;
}

// Deletes a pool that was destroyed while allocations of it were alive.
void Finish(Pool* pool) {
  GiveBack(pool, 0);
  GetPools().all.erase(pool);
  delete pool;
}

CUresult AllocateAsync(CUdeviceptr* address, std::size_t bytes, Pool* pool, CUstream handle) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(FindStream(handle, &stream));
  if (pool == nullptr) pool = CurrentPool(stream->context->device);
  if (PoolOf(HandleOf(pool)) == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) return CaptureAllocation(stream, pool->device, bytes, address);
  SIMGPU_RETURN_IF_ERROR(AllocateFromPool(pool, stream->context, bytes, address));
  CountOperation(stream);
  return CUDA_SUCCESS;
}

}  // namespace

Pool* DefaultPool(Device* device) {
  Pool*& pool = GetPools().defaults[device];
  if (pool == nullptr) pool = NewPool(device, true);
  return pool;
}

Pool* CurrentPool(Device* device) {
  const auto found = GetPools().current.find(device);
  return found == GetPools().current.end() ? DefaultPool(device) : found->second;
}

CUresult AllocateFromPool(Pool* pool, Context* context, std::size_t bytes, CUdeviceptr* address) {
  if (bytes > DeviceTotalBytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t size = RoundUp(bytes, kAlignment);
  std::uintptr_t found = pool->heap.Allocate(size);
  if (found == 0) {
    const std::size_t chunk = RoundUp(size, static_cast<std::size_t>(GetProfile()->Get("pool.chunk_bytes")));
    const std::size_t least = RoundUp(size, static_cast<std::size_t>(GetProfile()->Get("memory.granularity")));
    // When memory is short, what other pools hold unused goes first, then the generosity.
    if (Grow(pool, chunk) != CUDA_SUCCESS) {
      for (Pool* other : GetPools().all) {
        if (other->device == pool->device) GiveBack(other, 0);
      }
      if (Grow(pool, chunk) != CUDA_SUCCESS) SIMGPU_RETURN_IF_ERROR(Grow(pool, least));
    }
    found = pool->heap.Allocate(size);
  }
  AddAllocation({.address = found,
                 .bytes = bytes,
                 .kind = MemoryKind::kAsync,
                 .context = context,
                 .device = pool->device,
                 .pool = pool});
  pool->used += size;
  pool->used_high = std::max(pool->used_high, pool->used);
  *address = found;
  return CUDA_SUCCESS;
}

void FreeToPool(Allocation* allocation) {
  if (allocation->kind == MemoryKind::kGraph) {
    FreeGraphMemory(allocation);
    return;
  }
  const Allocation gone = *allocation;
  RemoveAllocation(gone.address);
  const std::size_t size = RoundUp(gone.bytes, kAlignment);
  ZeroRange(gone.address, size);
  gone.pool->heap.Free(gone.address, size);
  gone.pool->used -= size;
  if (gone.pool->destroyed && gone.pool->used == 0) Finish(gone.pool);
}

void TrimPoolsAtSynchronization(const Device* device) {
  for (Pool* pool : GetPools().all) {
    if (pool->device == device && pool->reserved() > pool->release_threshold) GiveBack(pool, pool->release_threshold);
  }
}

void ReleasePoolsOf(Device* device) {
  Pools& pools = GetPools();
  pools.current.erase(device);
  for (Pool* pool : pools.all) {
    if (pool->device != device) continue;
    GiveBack(pool, 0);
    pool->used_high = pool->used;
    pool->reserved_high = pool->reserved();
    if (pool->is_default) pool->release_threshold = 0;
  }
}

}  // namespace simgpu

using simgpu::Device;
using simgpu::FindDevice;
using simgpu::Guard;
using simgpu::HandleOf;
using simgpu::Pool;
using simgpu::PoolOf;

// ---- Allocations

SIMGPU_API cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  SIMGPU_ENTER();
  return simgpu::AllocateAsync(address, bytes, nullptr, stream);
}

SIMGPU_API cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  SIMGPU_ENTER();
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::AllocateAsync(address, bytes, reinterpret_cast<Pool*>(pool), stream);
}

SIMGPU_API cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  SIMGPU_ENTER();
  const Guard guard;
  simgpu::Stream* stream = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(handle, &stream));
  if (address == 0) return CUDA_SUCCESS;
  simgpu::Allocation* allocation = simgpu::FindAllocationAt(address);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) return simgpu::CaptureFree(stream, allocation);
  switch (allocation->kind) {
    case simgpu::MemoryKind::kAsync:
    case simgpu::MemoryKind::kGraph:
      simgpu::FreeToPool(allocation);
      break;
    case simgpu::MemoryKind::kLinear:
    case simgpu::MemoryKind::kManaged:
      simgpu::FreeLinear(allocation);  // allowed in life
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  simgpu::CountOperation(stream);
  return CUDA_SUCCESS;
}

// ---- Pools

SIMGPU_API cuDeviceGetDefaultMemPool(CUmemoryPool* handle, CUdevice ordinal) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *handle = HandleOf(simgpu::DefaultPool(device));
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetMemPool(CUmemoryPool* handle, CUdevice ordinal) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *handle = HandleOf(simgpu::CurrentPool(device));
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Pool* pool = PoolOf(handle);
  if (pool == nullptr || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  simgpu::GetPools().current[device] = pool;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolCreate(CUmemoryPool* handle, const CUmemPoolProps* properties) {
  SIMGPU_ENTER();
  if (handle == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  const Guard guard;
  Device* device = FindDevice(properties->location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Pool* pool = simgpu::NewPool(device, false);
  pool->max_bytes = properties->maxSize;
  *handle = HandleOf(pool);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolDestroy(CUmemoryPool handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Pool* pool = PoolOf(handle);
  if (pool == nullptr || pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  auto& current = simgpu::GetPools().current;
  const auto used = current.find(pool->device);
  if (used != current.end() && used->second == pool) current.erase(used);
  pool->destroyed = true;
  if (pool->used == 0) simgpu::Finish(pool);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  SIMGPU_ENTER();
  const Guard guard;
  Pool* pool = PoolOf(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  simgpu::GiveBack(pool, keep);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Pool* pool = PoolOf(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      pool->release_threshold = *static_cast<const cuuint64_t*>(value);
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:  // only to zero, which means: from now on
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->reserved_high = pool->reserved();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (*static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
      pool->used_high = pool->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES] = *static_cast<const int*>(value);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Pool* pool = PoolOf(handle);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *bytes = pool->release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *bytes = pool->reserved();
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *bytes = pool->reserved_high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *bytes = pool->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *bytes = pool->used_high;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = pool->reuse[attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc*, size_t) {
  SIMGPU_ENTER();
  const Guard guard;
  return PoolOf(handle) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

SIMGPU_API cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle, CUmemLocation*) {
  SIMGPU_ENTER();
  const Guard guard;
  if (flags == nullptr || PoolOf(handle) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

// The forms of CUDA 13, which know pools of other places as well; here there are only those of devices.

SIMGPU_API cuMemGetDefaultMemPool(CUmemoryPool* handle, CUmemLocation* location, CUmemAllocationType) {
  SIMGPU_ENTER();
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return cuDeviceGetDefaultMemPool(handle, location->id);
}

SIMGPU_API cuMemGetMemPool(CUmemoryPool* handle, CUmemLocation* location, CUmemAllocationType) {
  SIMGPU_ENTER();
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return cuDeviceGetMemPool(handle, location->id);
}

SIMGPU_API cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType, CUmemoryPool handle) {
  SIMGPU_ENTER();
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return cuDeviceSetMemPool(location->id, handle);
}
