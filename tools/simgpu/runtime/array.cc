#include "tools/simgpu/runtime/array.h"

#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

namespace simgpu::runtime {
namespace {

size_t FormatSize(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

// False for a channel width that no array format has.
bool ToDriverFormat(const cudaChannelFormatDesc& desc, CUarray_format* format, unsigned* channels) {
  *channels = 1U + (desc.y != 0 ? 1U : 0U) + (desc.z != 0 ? 1U : 0U) + (desc.w != 0 ? 1U : 0U);
  const bool is_signed = desc.f == cudaChannelFormatKindSigned;
  switch (desc.x) {
    case 8:
      *format = is_signed ? CU_AD_FORMAT_SIGNED_INT8 : CU_AD_FORMAT_UNSIGNED_INT8;
      return true;
    case 16:
      *format = desc.f == cudaChannelFormatKindFloat ? CU_AD_FORMAT_HALF
                : is_signed                          ? CU_AD_FORMAT_SIGNED_INT16
                                                     : CU_AD_FORMAT_UNSIGNED_INT16;
      return true;
    case 32:
      *format = desc.f == cudaChannelFormatKindFloat ? CU_AD_FORMAT_FLOAT
                : is_signed                          ? CU_AD_FORMAT_SIGNED_INT32
                                                     : CU_AD_FORMAT_UNSIGNED_INT32;
      return true;
    default:
      return false;
  }
}

cudaChannelFormatDesc FromDriverFormat(CUarray_format format, unsigned channels) {
  const int bits = static_cast<int>(FormatSize(format) * 8);
  cudaChannelFormatKind kind = cudaChannelFormatKindUnsigned;
  if (format == CU_AD_FORMAT_HALF || format == CU_AD_FORMAT_FLOAT) kind = cudaChannelFormatKindFloat;
  if (format == CU_AD_FORMAT_SIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT16 ||
      format == CU_AD_FORMAT_SIGNED_INT32) {
    kind = cudaChannelFormatKindSigned;
  }
  return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

cudaError_t Describe(const cudaChannelFormatDesc* desc, cudaExtent extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR* result) {
  if (desc == nullptr) return cudaErrorInvalidValue;
  *result = {extent.width, extent.height, extent.depth, {}, 0, flags};
  return ToDriverFormat(*desc, &result->Format, &result->NumChannels) ? cudaSuccess : cudaErrorInvalidChannelDescriptor;
}

// One end of a 3D copy, in the driver's terms.
struct CopyEnd {
  CUmemorytype type = CU_MEMORYTYPE_UNIFIED;
  CUarray array = nullptr;
  CUdeviceptr pointer = 0;
  size_t pitch = 0;
  size_t height = 0;
  size_t element_size = 1;
};

CopyEnd MakeEnd(cudaArray_t array, const cudaPitchedPtr& pitched) {
  CopyEnd end;
  if (array != nullptr) {
    end.type = CU_MEMORYTYPE_ARRAY;
    end.array = reinterpret_cast<CUarray>(array);
    end.element_size = ElementSize(end.array);
  } else {
    end.pointer = reinterpret_cast<CUdeviceptr>(pitched.ptr);
    end.pitch = pitched.pitch;
    end.height = pitched.ysize;
  }
  return end;
}

// Fills what CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have in common.
template <class DriverParams, class RuntimeParams>
DriverParams Translate(const RuntimeParams& copy) {
  const CopyEnd source = MakeEnd(copy.srcArray, copy.srcPtr);
  const CopyEnd destination = MakeEnd(copy.dstArray, copy.dstPtr);
  DriverParams result = {};
  result.srcMemoryType = source.type;
  result.srcArray = source.array;
  result.srcDevice = source.pointer;
  result.srcPitch = source.pitch;
  result.srcHeight = source.height;
  result.srcXInBytes = copy.srcPos.x * source.element_size;
  result.srcY = copy.srcPos.y;
  result.srcZ = copy.srcPos.z;
  result.dstMemoryType = destination.type;
  result.dstArray = destination.array;
  result.dstDevice = destination.pointer;
  result.dstPitch = destination.pitch;
  result.dstHeight = destination.height;
  result.dstXInBytes = copy.dstPos.x * destination.element_size;
  result.dstY = copy.dstPos.y;
  result.dstZ = copy.dstPos.z;
  const size_t element_size = source.array != nullptr ? source.element_size : destination.element_size;
  result.WidthInBytes = copy.extent.width * element_size;
  result.Height = copy.extent.height;
  result.Depth = copy.extent.depth;
  return result;
}

}  // namespace

size_t ElementSize(CUarray array) {
  CUDA_ARRAY3D_DESCRIPTOR desc = {};
  if (array == nullptr || CallDriver(GetDriver().cuArray3DGetDescriptor, &desc, array) != cudaSuccess) return 1;
  return FormatSize(desc.Format) * desc.NumChannels;
}

CUDA_MEMCPY3D DriverCopy(const cudaMemcpy3DParms& copy) { return Translate<CUDA_MEMCPY3D>(copy); }

cudaError_t DriverPeerCopy(const cudaMemcpy3DPeerParms& copy, CUDA_MEMCPY3D_PEER* result) {
  *result = Translate<CUDA_MEMCPY3D_PEER>(copy);
  const cudaError_t source = RetainPrimaryContext(copy.srcDevice, &result->srcContext);
  return source != cudaSuccess ? source : RetainPrimaryContext(copy.dstDevice, &result->dstContext);
}

}  // namespace simgpu::runtime

using namespace simgpu::runtime;

extern "C" {

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* desc, cudaArray_const_t array) {
  return cudaArrayGetInfo(desc, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                              unsigned int flags) {
  CUDA_ARRAY3D_DESCRIPTOR description;
  const cudaError_t described = Describe(desc, extent, flags, &description);
  if (described != cudaSuccess) return Record(described);
  return Forward<&Driver::cuArray3DCreate>(array, &description);
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* desc, size_t width, size_t height,
                            unsigned int flags) {
  return cudaMalloc3DArray(array, desc, {width, height, 0}, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
  return array == nullptr ? Record(EnsureContext()) : Forward<&Driver::cuArrayDestroy>(array);
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* desc, cudaExtent* extent, unsigned int* flags, cudaArray_t array) {
  CUDA_ARRAY3D_DESCRIPTOR description = {};
  const cudaError_t found = Forward<&Driver::cuArray3DGetDescriptor>(&description, array);
  if (found != cudaSuccess) return found;
  if (desc != nullptr) *desc = FromDriverFormat(description.Format, description.NumChannels);
  if (extent != nullptr) *extent = {description.Width, description.Height, description.Depth};
  if (flags != nullptr) *flags = description.Flags;
  return cudaSuccess;
}

cudaError_t cudaArrayGetPlane(cudaArray_t* plane, cudaArray_t array, unsigned int index) {
  return Forward<&Driver::cuArrayGetPlane>(plane, array, index);
}

cudaError_t cudaArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements, cudaArray_t array, int device) {
  return Forward<&Driver::cuArrayGetMemoryRequirements>(requirements, array, device);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array, const cudaChannelFormatDesc* desc, cudaExtent extent,
                                     unsigned int levels, unsigned int flags) {
  CUDA_ARRAY3D_DESCRIPTOR description;
  const cudaError_t described = Describe(desc, extent, flags, &description);
  if (described != cudaSuccess) return Record(described);
  return Forward<&Driver::cuMipmappedArrayCreate>(array, &description, levels);
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* level_array, cudaMipmappedArray_const_t array, unsigned int level) {
  return Forward<&Driver::cuMipmappedArrayGetLevel>(level_array, array, level);
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array) {
  return array == nullptr ? Record(EnsureContext()) : Forward<&Driver::cuMipmappedArrayDestroy>(array);
}

cudaError_t cudaMipmappedArrayGetMemoryRequirements(cudaArrayMemoryRequirements* requirements,
                                                    cudaMipmappedArray_t array, int device) {
  return Forward<&Driver::cuMipmappedArrayGetMemoryRequirements>(requirements, array, device);
}

}  // extern "C"
