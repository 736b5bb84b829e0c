// CUDA arrays, at both layers. Their padding is the driver's secret: the size noted is that of the texels asked for.
#include <algorithm>

#include "interpose/hooks/hooks.h"
#include "interpose/hooks/memory_call.h"

namespace ledger::hooks {
namespace {

using record::Kind;
using record::Memory;

struct Extent {
  std::uint64_t width, height, depth;

  std::uint64_t Texels() const {
    return width * std::max<std::uint64_t>(height, 1) * std::max<std::uint64_t>(depth, 1);
  }
  Extent Half() const { return {std::max<std::uint64_t>(width / 2, 1), height / 2, depth / 2}; }
};

// Per channel. Formats with several channels in one value, and compressed ones, count as a byte: an approximation.
std::uint64_t ChannelBytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 1;
  }
}

std::uint64_t TexelBytes(const cudaChannelFormatDesc* format) {
  if (format == nullptr) return 0;
  constexpr int kBitsPerByte = 8;
  return static_cast<std::uint64_t>(std::max(0, format->x + format->y + format->z + format->w) / kBitsPerByte);
}

std::uint64_t AllLevels(Extent extent, unsigned int levels) {
  std::uint64_t texels = 0;
  for (unsigned int level = 0; level < levels; ++level, extent = extent.Half()) texels += extent.Texels();
  return texels;
}

template <typename Descriptor>
std::uint64_t TexelBytes(const Descriptor* descriptor) {
  return descriptor == nullptr ? 0 : ChannelBytes(descriptor->Format) * descriptor->NumChannels;
}

Extent ExtentOf(const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return descriptor == nullptr ? Extent{} : Extent{descriptor->Width, descriptor->Height, descriptor->Depth};
}

template <typename Function, typename Array, typename... Arguments>
auto AllocateArray(const Call<Function>& call, std::uint64_t bytes, Array array, Arguments... arguments) {
  return Allocate(
      call,
      [&](auto result) { return Piece{.memory = Memory::kArray, .address = OutValue(result, array), .size = bytes}; },
      array, arguments...);
}

template <typename Function, typename Array>
auto ReleaseArray(const Call<Function>& call, Array array) {
  return Release(call, Piece{.memory = Memory::kArray, .address = AddressOf(array), .kind = Kind::kFree}, array);
}

}  // namespace

CUresult ArrayCreate(const Call<decltype(&::cuArrayCreate_v2)>& call, CUarray* array,
                     const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  const Extent extent = descriptor == nullptr ? Extent{} : Extent{descriptor->Width, descriptor->Height, 0};
  return AllocateArray(call, extent.Texels() * TexelBytes(descriptor), array, descriptor);
}

CUresult Array3DCreate(const Call<decltype(&::cuArray3DCreate_v2)>& call, CUarray* array,
                       const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  return AllocateArray(call, ExtentOf(descriptor).Texels() * TexelBytes(descriptor), array, descriptor);
}

CUresult ArrayDestroy(const Call<decltype(&::cuArrayDestroy)>& call, CUarray array) {
  return ReleaseArray(call, array);
}

CUresult MipmappedArrayCreate(const Call<decltype(&::cuMipmappedArrayCreate)>& call, CUmipmappedArray* array,
                              const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned int levels) {
  return AllocateArray(call, AllLevels(ExtentOf(descriptor), levels) * TexelBytes(descriptor), array, descriptor,
                       levels);
}

CUresult MipmappedArrayDestroy(const Call<decltype(&::cuMipmappedArrayDestroy)>& call, CUmipmappedArray array) {
  return ReleaseArray(call, array);
}

cudaError_t RuntimeMallocArray(const Call<decltype(&::cudaMallocArray)>& call, cudaArray_t* array,
                               const cudaChannelFormatDesc* format, size_t width, size_t height, unsigned int flags) {
  return AllocateArray(call, Extent{width, height, 0}.Texels() * TexelBytes(format), array, format, width, height,
                       flags);
}

cudaError_t RuntimeMalloc3DArray(const Call<decltype(&::cudaMalloc3DArray)>& call, cudaArray_t* array,
                                 const cudaChannelFormatDesc* format, cudaExtent extent, unsigned int flags) {
  return AllocateArray(call, Extent{extent.width, extent.height, extent.depth}.Texels() * TexelBytes(format), array,
                       format, extent, flags);
}

cudaError_t RuntimeMallocMipmappedArray(const Call<decltype(&::cudaMallocMipmappedArray)>& call,
                                        cudaMipmappedArray_t* array, const cudaChannelFormatDesc* format,
                                        cudaExtent extent, unsigned int levels, unsigned int flags) {
  const std::uint64_t texels = AllLevels(Extent{extent.width, extent.height, extent.depth}, levels);
  return AllocateArray(call, texels * TexelBytes(format), array, format, extent, levels, flags);
}

cudaError_t RuntimeFreeArray(const Call<decltype(&::cudaFreeArray)>& call, cudaArray_t array) {
  return ReleaseArray(call, array);
}

cudaError_t RuntimeFreeMipmappedArray(const Call<decltype(&::cudaFreeMipmappedArray)>& call,
                                      cudaMipmappedArray_t array) {
  return ReleaseArray(call, array);
}

}  // namespace ledger::hooks
