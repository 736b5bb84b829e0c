// Driver: linear, pitched, managed and host memory.
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/memory_call.h"

namespace ledger::hooks {

using record::kNoDevice;
using record::Memory;

CUresult MemAlloc(const Call<decltype(&::cuMemAlloc_v2)>& call, CUdeviceptr* pointer, size_t bytes) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kLinear, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes);
}

CUresult MemAllocPitch(const Call<decltype(&::cuMemAllocPitch_v2)>& call, CUdeviceptr* pointer, size_t* pitch,
                       size_t width, size_t height, unsigned int element_bytes) {
  return Allocate(
      call,
      [&](CUresult result) {
        // Before it is granted there is no pitch: what was asked for then is the width.
        const std::uint64_t row = OutValue(result, pitch) != 0 ? *pitch : width;
        return Piece{.memory = Memory::kPitched, .address = OutValue(result, pointer), .size = row * height};
      },
      pointer, pitch, width, height, element_bytes);
}

CUresult MemAllocManaged(const Call<decltype(&::cuMemAllocManaged)>& call, CUdeviceptr* pointer, size_t bytes,
                         unsigned int flags) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kManaged, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes, flags);
}

CUresult MemFree(const Call<decltype(&::cuMemFree_v2)>& call, CUdeviceptr pointer) {
  return Release(call, Piece{.address = pointer, .kind = record::Kind::kFree}, pointer);
}

CUresult MemAllocHost(const Call<decltype(&::cuMemAllocHost_v2)>& call, void** pointer, size_t bytes) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kHost, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes);
}

CUresult MemHostAlloc(const Call<decltype(&::cuMemHostAlloc)>& call, void** pointer, size_t bytes, unsigned int flags) {
  return Allocate(
      call,
      [&](CUresult result) {
        return Piece{.memory = Memory::kHost, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes, flags);
}

CUresult MemFreeHost(const Call<decltype(&::cuMemFreeHost)>& call, void* pointer) {
  return Release(call, Piece{.memory = Memory::kHost, .address = AddressOf(pointer), .kind = record::Kind::kFree},
                 pointer);
}

CUresult MemHostRegister(const Call<decltype(&::cuMemHostRegister_v2)>& call, void* pointer, size_t bytes,
                         unsigned int flags) {
  return Allocate(
      call,
      [&](CUresult) { return Piece{.memory = Memory::kHostRegistered, .address = AddressOf(pointer), .size = bytes}; },
      pointer, bytes, flags);
}

CUresult MemHostUnregister(const Call<decltype(&::cuMemHostUnregister)>& call, void* pointer) {
  return Release(call,
                 Piece{.memory = Memory::kHostRegistered, .address = AddressOf(pointer), .kind = record::Kind::kFree},
                 pointer);
}

}  // namespace ledger::hooks
