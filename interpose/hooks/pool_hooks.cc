// Stream-ordered memory, at both layers. It comes out of a pool, which takes physical memory from the device in larger
// pieces and keeps it: the pool's own counters are noted after each call. On a stream that is being captured such a
// call makes a node of a graph, and gets no memory.
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/memory_call.h"

namespace ledger::hooks {
namespace {

using record::Kind;
using record::Memory;

CUmemoryPool PoolBehind(cudaMemPool_t pool) { return reinterpret_cast<CUmemoryPool>(pool); }

bool Capturing(const Site& site, CUstream stream) { return IsCapturing(stream, InfoOf(site.entry).per_thread); }

// `pool` null: the device's current one. Pointer is CUdeviceptr* or void**.
template <typename Function, typename Pointer, typename... Arguments>
auto AllocateFromPool(const Call<Function>& call, CUstream stream, CUmemoryPool pool, Pointer pointer, size_t bytes,
                      Arguments... rest) {
  if (Capturing(call.site, stream)) return PassThrough(call, pointer, bytes, rest...);
  const auto result = Allocate(
      call,
      [&](auto outcome) {
        return Piece{.memory = Memory::kAsync,
                     .address = OutValue(outcome, pointer),
                     .size = bytes,
                     .context = AddressOf(pool != nullptr ? static_cast<void*>(pool) : static_cast<void*>(stream))};
      },
      pointer, bytes, rest...);
  if (static_cast<int>(result) == 0 && InsideNoHook() && Active()) {
    ErrnoSaver errno_saver;
    SamplePool(pool, call.site.entry);
  }
  return result;
}

template <typename Function, typename Pointer>
auto FreeToPool(const Call<Function>& call, CUstream stream, std::uint64_t address, Pointer pointer) {
  if (Capturing(call.site, stream)) return PassThrough(call, pointer, stream);
  const bool recorded = InsideNoHook() && Active();
  const CUmemoryPool pool = recorded ? PoolOf(address) : nullptr;
  const auto result = Release(
      call, Piece{.memory = Memory::kAsync, .address = address, .context = AddressOf(stream), .kind = Kind::kFree},
      pointer, stream);
  if (static_cast<int>(result) == 0 && recorded) {
    ErrnoSaver errno_saver;
    SamplePool(pool, call.site.entry);
  }
  return result;
}

template <typename Function, typename Pool>
auto TrimPool(const Call<Function>& call, CUmemoryPool driver_pool, Pool pool, size_t bytes) {
  const auto result = PassThrough(call, pool, bytes);
  if (static_cast<int>(result) == 0 && InsideNoHook() && Active()) {
    ErrnoSaver errno_saver;
    SamplePool(driver_pool, call.site.entry);
    SampleDevice(call.site.entry);
  }
  return result;
}

template <typename Function, typename Pool>
auto DestroyPool(const Call<Function>& call, CUmemoryPool driver_pool, Pool pool) {
  const auto result = PassThrough(call, pool);
  if (static_cast<int>(result) == 0 && InsideNoHook() && Active()) {
    ErrnoSaver errno_saver;
    NotePoolGone(driver_pool);
    SampleDevice(call.site.entry);
  }
  return result;
}

// Memory of another process's pool: mapped here, charged there.
template <typename Function, typename Pointer, typename Pool, typename Data>
auto ImportFromPool(const Call<Function>& call, Pointer pointer, Pool pool, Data data) {
  return Allocate(
      call,
      [&](auto result) {
        return Piece{.memory = Memory::kPeer, .address = OutValue(result, pointer), .context = AddressOf(pool)};
      },
      pointer, pool, data);
}

}  // namespace

CUresult MemAllocAsync(const Call<decltype(&::cuMemAllocAsync)>& call, CUdeviceptr* pointer, size_t bytes,
                       CUstream stream) {
  return AllocateFromPool(call, stream, nullptr, pointer, bytes, stream);
}

CUresult MemAllocFromPoolAsync(const Call<decltype(&::cuMemAllocFromPoolAsync)>& call, CUdeviceptr* pointer,
                               size_t bytes, CUmemoryPool pool, CUstream stream) {
  return AllocateFromPool(call, stream, pool, pointer, bytes, pool, stream);
}

CUresult MemFreeAsync(const Call<decltype(&::cuMemFreeAsync)>& call, CUdeviceptr pointer, CUstream stream) {
  return FreeToPool(call, stream, pointer, pointer);
}

CUresult MemPoolTrimTo(const Call<decltype(&::cuMemPoolTrimTo)>& call, CUmemoryPool pool, size_t bytes) {
  return TrimPool(call, pool, pool, bytes);
}

CUresult MemPoolDestroy(const Call<decltype(&::cuMemPoolDestroy)>& call, CUmemoryPool pool) {
  return DestroyPool(call, pool, pool);
}

CUresult MemPoolImportPointer(const Call<decltype(&::cuMemPoolImportPointer)>& call, CUdeviceptr* pointer,
                              CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  return ImportFromPool(call, pointer, pool, data);
}

cudaError_t RuntimeMallocAsync(const Call<decltype(&::cudaMallocAsync)>& call, void** pointer, size_t bytes,
                               cudaStream_t stream) {
  return AllocateFromPool(call, stream, nullptr, pointer, bytes, stream);
}

cudaError_t RuntimeMallocFromPoolAsync(const Call<decltype(&::cudaMallocFromPoolAsync)>& call, void** pointer,
                                       size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
  return AllocateFromPool(call, stream, PoolBehind(pool), pointer, bytes, pool, stream);
}

cudaError_t RuntimeFreeAsync(const Call<decltype(&::cudaFreeAsync)>& call, void* pointer, cudaStream_t stream) {
  return FreeToPool(call, stream, AddressOf(pointer), pointer);
}

cudaError_t RuntimeMemPoolTrimTo(const Call<decltype(&::cudaMemPoolTrimTo)>& call, cudaMemPool_t pool, size_t bytes) {
  return TrimPool(call, PoolBehind(pool), pool, bytes);
}

cudaError_t RuntimeMemPoolDestroy(const Call<decltype(&::cudaMemPoolDestroy)>& call, cudaMemPool_t pool) {
  return DestroyPool(call, PoolBehind(pool), pool);
}

cudaError_t RuntimeMemPoolImportPointer(const Call<decltype(&::cudaMemPoolImportPointer)>& call, void** pointer,
                                        cudaMemPool_t pool, cudaMemPoolPtrExportData* data) {
  return ImportFromPool(call, pointer, pool, data);
}

}  // namespace ledger::hooks
