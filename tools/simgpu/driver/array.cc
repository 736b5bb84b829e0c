#include "tools/simgpu/driver/array.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

namespace simgpu {
namespace {

// What an array takes is its elements, rounded up to whole granules: the driver's own padding is not documented.
struct Array {
  Context* context;
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  std::uint64_t charged;
  bool owned_by_mipmap = false;
};

struct Mipmap {
  Context* context;
  std::vector<Array*> levels;
};

struct Registry {
  std::unordered_set<Array*> arrays;
  std::unordered_set<Mipmap*> mipmaps;
};

Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

std::uint64_t ElementBytes(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  switch (descriptor.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return descriptor.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return std::uint64_t{2} * descriptor.NumChannels;
    default:
      return std::uint64_t{4} * descriptor.NumChannels;
  }
}

std::uint64_t Bytes(const CUDA_ARRAY3D_DESCRIPTOR& descriptor) {
  return ElementBytes(descriptor) * descriptor.Width * std::max<std::uint64_t>(descriptor.Height, 1) *
         std::max<std::uint64_t>(descriptor.Depth, 1);
}

CUresult NewArray(Context* context, const CUDA_ARRAY3D_DESCRIPTOR& descriptor, Array** array) {
  if (descriptor.Width == 0 || descriptor.NumChannels == 0 || descriptor.NumChannels > 4) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t bytes = RoundUp(Bytes(descriptor), GetProfile()->Get("memory.granularity"));
  SIMGPU_RETURN_IF_ERROR(ChargeDevice(*context->device, bytes));
  *array = new Array{.context = context, .descriptor = descriptor, .charged = bytes};
  GetRegistry().arrays.insert(*array);
  return CUDA_SUCCESS;
}

void DeleteArray(Array* array) {
  DischargeDevice(*array->context->device, array->charged);
  GetRegistry().arrays.erase(array);
  delete array;
}

void DeleteMipmap(Mipmap* mipmap) {
  for (Array* level : mipmap->levels) DeleteArray(level);
  GetRegistry().mipmaps.erase(mipmap);
  delete mipmap;
}

Array* ArrayOf(CUarray handle) {
  auto* array = reinterpret_cast<Array*>(handle);
  return GetRegistry().arrays.count(array) != 0 ? array : nullptr;
}

Mipmap* MipmapOf(CUmipmappedArray handle) {
  auto* mipmap = reinterpret_cast<Mipmap*>(handle);
  return GetRegistry().mipmaps.count(mipmap) != 0 ? mipmap : nullptr;
}

}  // namespace

void FreeArraysOf(const Context* context) {
  const std::unordered_set<Mipmap*> mipmaps = GetRegistry().mipmaps;
  for (Mipmap* mipmap : mipmaps) {
    if (mipmap->context == context) DeleteMipmap(mipmap);
  }
  const std::unordered_set<Array*> arrays = GetRegistry().arrays;
  for (Array* array : arrays) {
    if (array->context == context) DeleteArray(array);
  }
}

}  // namespace simgpu

using simgpu::Array;
using simgpu::ArrayOf;
using simgpu::Context;
using simgpu::Guard;
using simgpu::Mipmap;

SIMGPU_API cuArray3DCreate(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (handle == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Array* array = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::NewArray(context, *descriptor, &array));
  *handle = reinterpret_cast<CUarray>(array);
  return CUDA_SUCCESS;
}

SIMGPU_API cuArrayCreate(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR whole = {};
  whole.Width = descriptor->Width;
  whole.Height = descriptor->Height;
  whole.Format = descriptor->Format;
  whole.NumChannels = descriptor->NumChannels;
  return cuArray3DCreate(handle, &whole);
}

SIMGPU_API cuArrayDestroy(CUarray handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Array* array = ArrayOf(handle);
  if (array == nullptr || array->owned_by_mipmap) return CUDA_ERROR_INVALID_HANDLE;
  simgpu::DeleteArray(array);
  return CUDA_SUCCESS;
}

SIMGPU_API cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  SIMGPU_ENTER();
  const Guard guard;
  const Array* array = ArrayOf(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *descriptor = array->descriptor;
  return CUDA_SUCCESS;
}

SIMGPU_API cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR whole = {};
  SIMGPU_RETURN_IF_ERROR(cuArray3DGetDescriptor(&whole, handle));
  descriptor->Width = whole.Width;
  descriptor->Height = whole.Height;
  descriptor->Format = whole.Format;
  descriptor->NumChannels = whole.NumChannels;
  return CUDA_SUCCESS;
}

SIMGPU_API cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUarray handle, CUdevice) {
  SIMGPU_ENTER();
  const Guard guard;
  const Array* array = ArrayOf(handle);
  if (array == nullptr || requirements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *requirements = {};
  requirements->size = array->charged;
  requirements->alignment = simgpu::GetProfile()->Get("memory.granularity");
  return CUDA_SUCCESS;
}

SIMGPU_API cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                  unsigned levels) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (handle == nullptr || descriptor == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  auto* mipmap = new Mipmap{.context = context, .levels = {}};
  CUDA_ARRAY3D_DESCRIPTOR level = *descriptor;
  for (unsigned i = 0; i < levels; ++i) {
    Array* array = nullptr;
    if (const CUresult result = simgpu::NewArray(context, level, &array); result != CUDA_SUCCESS) {
      simgpu::DeleteMipmap(mipmap);
      return result;
    }
    array->owned_by_mipmap = true;
    mipmap->levels.push_back(array);
    level.Width = std::max<std::size_t>(level.Width / 2, 1);
    if (level.Height > 0) level.Height = std::max<std::size_t>(level.Height / 2, 1);
    if (level.Depth > 0) level.Depth = std::max<std::size_t>(level.Depth / 2, 1);
  }
  simgpu::GetRegistry().mipmaps.insert(mipmap);
  *handle = reinterpret_cast<CUmipmappedArray>(mipmap);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMipmappedArrayGetLevel(CUarray* level_handle, CUmipmappedArray handle, unsigned level) {
  SIMGPU_ENTER();
  const Guard guard;
  const Mipmap* mipmap = simgpu::MipmapOf(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (level_handle == nullptr || level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *level_handle = reinterpret_cast<CUarray>(mipmap->levels[level]);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Mipmap* mipmap = simgpu::MipmapOf(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  simgpu::DeleteMipmap(mipmap);
  return CUDA_SUCCESS;
}
