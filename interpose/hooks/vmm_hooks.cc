// Driver: virtual memory management. Physical memory is born at cuMemCreate and dies when no handle and no mapping is
// left; what is imported is another process's.
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/memory_call.h"

namespace ledger::hooks {
namespace {

using record::Kind;
using record::kNoDevice;
using record::Memory;

bool OnDevice(const CUmemAllocationProp* properties) {
  return properties != nullptr && properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

}  // namespace

CUresult MemCreate(const Call<decltype(&::cuMemCreate)>& call, CUmemGenericAllocationHandle* handle, size_t bytes,
                   const CUmemAllocationProp* properties, unsigned long long flags) {
  return Allocate(
      call,
      [&](CUresult result) {
        const bool device = OnDevice(properties);
        return Piece{.memory = device ? Memory::kPhysical : Memory::kPhysicalHost,
                     .address = OutValue(result, handle),
                     .size = bytes,
                     .device = device ? static_cast<std::int8_t>(properties->location.id) : kNoDevice,
                     .kind = Kind::kHandleCreate};
      },
      handle, bytes, properties, flags);
}

CUresult MemRelease(const Call<decltype(&::cuMemRelease)>& call, CUmemGenericAllocationHandle handle) {
  return Release(call, Piece{.memory = Memory::kPhysical, .address = handle, .kind = Kind::kHandleRelease}, handle);
}

CUresult MemRetainAllocationHandle(const Call<decltype(&::cuMemRetainAllocationHandle)>& call,
                                   CUmemGenericAllocationHandle* handle, void* address) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kPhysical,
                     .address = OutValue(result, handle),
                     .device = kNoDevice,
                     .kind = Kind::kHandleRetain};
      },
      handle, address);
}

CUresult MemImportFromShareableHandle(const Call<decltype(&::cuMemImportFromShareableHandle)>& call,
                                      CUmemGenericAllocationHandle* handle, void* shared,
                                      CUmemAllocationHandleType type) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kPeer, .address = OutValue(result, handle), .kind = Kind::kHandleImport};
      },
      handle, shared, type);
}

// A multicast object is no memory of its own: what is bound to it has its own handle.
CUresult MulticastCreate(const Call<decltype(&::cuMulticastCreate)>& call, CUmemGenericAllocationHandle* handle,
                         const CUmulticastObjectProp* properties) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kPeer, .address = OutValue(result, handle), .kind = Kind::kHandleImport};
      },
      handle, properties);
}

CUresult MemMap(const Call<decltype(&::cuMemMap)>& call, CUdeviceptr address, size_t bytes, size_t offset,
                CUmemGenericAllocationHandle handle, unsigned long long flags) {
  HookGuard guard;
  const CUresult result = call.real(address, bytes, offset, handle, flags);
  if (guard.outermost() && result == CUDA_SUCCESS) NoteMapping(call.site, Kind::kMap, address, bytes, handle, offset);
  return result;
}

CUresult MemUnmap(const Call<decltype(&::cuMemUnmap)>& call, CUdeviceptr address, size_t bytes) {
  HookGuard guard;
  if (guard.outermost()) NoteMapping(call.site, Kind::kUnmap, address, bytes, 0, 0);
  const CUresult result = call.real(address, bytes);
  // The last mapping of a handle that was released before gives the memory back.
  if (guard.outermost() && result == CUDA_SUCCESS && Active()) {
    ErrnoSaver errno_saver;
    SampleDevice(call.site.entry);
  }
  return result;
}

CUresult MemAddressReserve(const Call<decltype(&::cuMemAddressReserve)>& call, CUdeviceptr* address, size_t bytes,
                           size_t alignment, CUdeviceptr wish, unsigned long long flags) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kAddressSpace,
                     .address = OutValue(result, address),
                     .size = bytes,
                     .kind = Kind::kReserve};
      },
      address, bytes, alignment, wish, flags);
}

CUresult MemAddressFree(const Call<decltype(&::cuMemAddressFree)>& call, CUdeviceptr address, size_t bytes) {
  return Release(call,
                 Piece{.memory = Memory::kAddressSpace, .address = address, .size = bytes, .kind = Kind::kUnreserve},
                 address, bytes);
}

}  // namespace ledger::hooks
