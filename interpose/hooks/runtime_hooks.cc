// Runtime: linear, pitched, managed and host memory. The driver's calls inside are the same allocation and not
// recorded.
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/memory_call.h"

namespace ledger::hooks {

using record::Kind;
using record::Memory;

cudaError_t RuntimeMalloc(const Call<decltype(&::cudaMalloc)>& call, void** pointer, size_t bytes) {
  return Allocate(
      call,
      [&](cudaError_t result) {
        return Piece{.memory = Memory::kLinear, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes);
}

cudaError_t RuntimeMallocPitch(const Call<decltype(&::cudaMallocPitch)>& call, void** pointer, size_t* pitch,
                               size_t width, size_t height) {
  return Allocate(
      call,
      [&](cudaError_t result) {
        const std::uint64_t row = OutValue(result, pitch) != 0 ? *pitch : width;
        return Piece{.memory = Memory::kPitched, .address = OutValue(result, pointer), .size = row * height};
      },
      pointer, pitch, width, height);
}

cudaError_t RuntimeMalloc3D(const Call<decltype(&::cudaMalloc3D)>& call, cudaPitchedPtr* pitched, cudaExtent extent) {
  return Allocate(
      call,
      [&](cudaError_t result) {
        const bool got = result == cudaSuccess && pitched != nullptr;
        const std::uint64_t row = got ? pitched->pitch : extent.width;
        return Piece{.memory = Memory::kPitched,
                     .address = got ? AddressOf(pitched->ptr) : 0,
                     .size = row * extent.height * extent.depth};
      },
      pitched, extent);
}

cudaError_t RuntimeMallocManaged(const Call<decltype(&::cudaMallocManaged)>& call, void** pointer, size_t bytes,
                                 unsigned int flags) {
  return Allocate(
      call,
      [&](cudaError_t result) {
        return Piece{.memory = Memory::kManaged, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes, flags);
}

cudaError_t RuntimeFree(const Call<decltype(&::cudaFree)>& call, void* pointer) {
  return Release(call, Piece{.address = AddressOf(pointer), .kind = Kind::kFree}, pointer);
}

cudaError_t RuntimeMallocHost(const Call<decltype(&::cudaMallocHost)>& call, void** pointer, size_t bytes) {
  return Allocate(
      call,
      [&](cudaError_t result) {
        return Piece{.memory = Memory::kHost, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes);
}

cudaError_t RuntimeHostAlloc(const Call<decltype(&::cudaHostAlloc)>& call, void** pointer, size_t bytes,
                             unsigned int flags) {
  return Allocate(
      call,
      [&](cudaError_t result) {
        return Piece{.memory = Memory::kHost, .address = OutValue(result, pointer), .size = bytes};
      },
      pointer, bytes, flags);
}

cudaError_t RuntimeFreeHost(const Call<decltype(&::cudaFreeHost)>& call, void* pointer) {
  return Release(call, Piece{.memory = Memory::kHost, .address = AddressOf(pointer), .kind = Kind::kFree}, pointer);
}

cudaError_t RuntimeHostRegister(const Call<decltype(&::cudaHostRegister)>& call, void* pointer, size_t bytes,
                                unsigned int flags) {
  return Allocate(
      call,
      [&](cudaError_t) {
        return Piece{.memory = Memory::kHostRegistered, .address = AddressOf(pointer), .size = bytes};
      },
      pointer, bytes, flags);
}

cudaError_t RuntimeHostUnregister(const Call<decltype(&::cudaHostUnregister)>& call, void* pointer) {
  return Release(call, Piece{.memory = Memory::kHostRegistered, .address = AddressOf(pointer), .kind = Kind::kFree},
                 pointer);
}

}  // namespace ledger::hooks
