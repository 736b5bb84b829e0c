// Memory that belongs to another process or another API (CUDA IPC, Vulkan, dma-buf), at both layers. It is mapped here
// and charged to its owner.
#include "interpose/core/driver_calls.h"
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/memory_call.h"

namespace ledger::hooks {
namespace {

using record::Kind;
using record::Memory;

// The handle does not say how large the memory is; the mapping does.
std::uint64_t MappedBytes(std::uint64_t address) {
  const DriverCalls& driver = Driver();
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  if (address == 0 || driver.cuMemGetAddressRange_v2 == nullptr ||
      driver.cuMemGetAddressRange_v2(&base, &bytes, address) != CUDA_SUCCESS) {
    return 0;
  }
  return bytes;
}

template <typename Function, typename Pointer, typename Handle>
auto OpenMemory(const Call<Function>& call, Pointer pointer, Handle handle, unsigned int flags) {
  return Allocate(
      call,
      [&](auto result) {
        const std::uint64_t address = OutValue(result, pointer);
        return Piece{.memory = Memory::kPeer, .address = address, .size = MappedBytes(address)};
      },
      pointer, handle, flags);
}

template <typename Function, typename Object, typename Descriptor>
auto ImportObject(const Call<Function>& call, Object object, const Descriptor* descriptor) {
  return Allocate(
      call,
      [&](auto result) {
        return Piece{.memory = Memory::kPeer,
                     .address = OutValue(result, object),
                     .size = descriptor == nullptr ? 0 : descriptor->size,
                     .kind = Kind::kHandleImport};
      },
      object, descriptor);
}

// Given back by cuMemFree or cudaFree, like memory.
template <typename Function, typename Pointer, typename Object, typename Descriptor>
auto MapObject(const Call<Function>& call, Pointer pointer, Object object, const Descriptor* descriptor) {
  return Allocate(
      call,
      [&](auto result) {
        return Piece{.memory = Memory::kPeer,
                     .address = OutValue(result, pointer),
                     .size = descriptor == nullptr ? 0 : descriptor->size,
                     .context = AddressOf(object)};
      },
      pointer, object, descriptor);
}

Piece PeerHandle(const void* object) {
  return Piece{.memory = Memory::kPeer, .address = AddressOf(object), .kind = Kind::kHandleRelease};
}

}  // namespace

CUresult IpcOpenMemHandle(const Call<decltype(&::cuIpcOpenMemHandle)>& call, CUdeviceptr* pointer,
                          CUipcMemHandle handle, unsigned int flags) {
  return OpenMemory(call, pointer, handle, flags);
}

CUresult IpcCloseMemHandle(const Call<decltype(&::cuIpcCloseMemHandle)>& call, CUdeviceptr pointer) {
  return Release(call, Piece{.memory = Memory::kPeer, .address = pointer, .kind = Kind::kFree}, pointer);
}

CUresult ImportExternalMemory(const Call<decltype(&::cuImportExternalMemory)>& call, CUexternalMemory* object,
                              const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* descriptor) {
  return ImportObject(call, object, descriptor);
}

CUresult ExternalMemoryGetMappedBuffer(const Call<decltype(&::cuExternalMemoryGetMappedBuffer)>& call,
                                       CUdeviceptr* pointer, CUexternalMemory object,
                                       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* descriptor) {
  return MapObject(call, pointer, object, descriptor);
}

CUresult DestroyExternalMemory(const Call<decltype(&::cuDestroyExternalMemory)>& call, CUexternalMemory object) {
  return Release(call, PeerHandle(object), object);
}

cudaError_t RuntimeIpcOpenMemHandle(const Call<decltype(&::cudaIpcOpenMemHandle)>& call, void** pointer,
                                    cudaIpcMemHandle_t handle, unsigned int flags) {
  return OpenMemory(call, pointer, handle, flags);
}

cudaError_t RuntimeIpcCloseMemHandle(const Call<decltype(&::cudaIpcCloseMemHandle)>& call, void* pointer) {
  return Release(call, Piece{.memory = Memory::kPeer, .address = AddressOf(pointer), .kind = Kind::kFree}, pointer);
}

cudaError_t RuntimeImportExternalMemory(const Call<decltype(&::cudaImportExternalMemory)>& call,
                                        cudaExternalMemory_t* object, const cudaExternalMemoryHandleDesc* descriptor) {
  return ImportObject(call, object, descriptor);
}

cudaError_t RuntimeExternalMemoryGetMappedBuffer(const Call<decltype(&::cudaExternalMemoryGetMappedBuffer)>& call,
                                                 void** pointer, cudaExternalMemory_t object,
                                                 const cudaExternalMemoryBufferDesc* descriptor) {
  return MapObject(call, pointer, object, descriptor);
}

cudaError_t RuntimeDestroyExternalMemory(const Call<decltype(&::cudaDestroyExternalMemory)>& call,
                                         cudaExternalMemory_t object) {
  return Release(call, PeerHandle(object), object);
}

}  // namespace ledger::hooks
