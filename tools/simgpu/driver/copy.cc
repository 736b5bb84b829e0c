#include "tools/simgpu/driver/copy.h"

#include <cstring>

#include "tools/simgpu/driver/address_space.h"
#include "tools/simgpu/driver/memory.h"
#include "tools/simgpu/driver/value_read.h"

namespace simgpu {
namespace {

// As CUpti_ActivityMemcpyKind numbers them.
constexpr std::uint32_t kHostToDevice = 1;
constexpr std::uint32_t kDeviceToHost = 2;
constexpr std::uint32_t kDeviceToDevice = 8;
constexpr std::uint32_t kHostToHost = 9;

bool IsDeviceMemory(std::uintptr_t address) {
  const Guard guard;
  const Allocation* allocation = FindAllocation(address);
  return allocation != nullptr && IsDeviceKind(allocation->kind) && allocation->device != nullptr;
}

std::uint32_t KindOf(bool to_device, bool from_device) {
  if (to_device) return from_device ? kDeviceToDevice : kHostToDevice;
  return from_device ? kDeviceToHost : kHostToHost;
}

struct Place {
  std::uintptr_t address;
  std::size_t pitch;
  std::size_t height;  // rows from one slice to the next
};

// A copy of rows within slices.
void MoveRows(const Place& to, const Place& from, std::size_t width, std::size_t height, std::size_t depth) {
  const bool to_device = IsDeviceMemory(to.address);
  const bool from_device = IsDeviceMemory(from.address);
  const std::size_t bytes = width * height * depth;
  if (bytes == 0) return;
  if (bytes <= GetOptions().copy_max || !to_device) {
    for (std::size_t slice = 0; slice < depth; ++slice) {
      for (std::size_t row = 0; row < height; ++row) {
        std::memmove(reinterpret_cast<void*>(to.address + (slice * to.height + row) * to.pitch),
                     reinterpret_cast<const void*>(from.address + (slice * from.height + row) * from.pitch), width);
      }
    }
  }
  if (from_device && !to_device) NoteValueRead(from.address, bytes);
}

void Fill(std::uintptr_t address, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
          std::size_t height) {
  const std::size_t bytes = width * element;
  if (value == 0 && height == 1) {
    ZeroRange(address, bytes);
    return;
  }
  if (bytes * height > GetOptions().copy_max && IsDeviceMemory(address)) return;
  for (std::size_t row = 0; row < height; ++row) {
    auto* at = reinterpret_cast<unsigned char*>(address + row * pitch);
    if (element == 1) {
      std::memset(at, static_cast<int>(value), bytes);
      continue;
    }
    for (std::size_t i = 0; i < width; ++i) std::memcpy(at + i * element, &value, element);
  }
}

}  // namespace

void MoveBytes(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
  MoveRows({to, bytes, 1}, {from, bytes, 1}, bytes, 1, 1);
}

Operation DescribeMove(std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
  return {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
          .bytes = bytes,
          .copy_kind = KindOf(IsDeviceMemory(to), IsDeviceMemory(from)),
          .effect = [=] { MoveBytes(to, from, bytes); }};
}

CUresult DescribeCopy(const CUDA_MEMCPY3D& copy, Operation* operation) {
  const auto address_of = [](CUmemorytype type, const void* host, CUdeviceptr device, std::uintptr_t* address) {
    switch (type) {
      case CU_MEMORYTYPE_HOST:
        *address = reinterpret_cast<std::uintptr_t>(host);
        return true;
      case CU_MEMORYTYPE_DEVICE:
      case CU_MEMORYTYPE_UNIFIED:
        *address = device;
        return true;
      default:
        return false;  // arrays have a size here, and no content
    }
  };
  Place from = {0, copy.srcPitch, copy.srcHeight};
  Place to = {0, copy.dstPitch, copy.dstHeight};
  const bool from_array = copy.srcMemoryType == CU_MEMORYTYPE_ARRAY;
  const bool to_array = copy.dstMemoryType == CU_MEMORYTYPE_ARRAY;
  if (!from_array && !address_of(copy.srcMemoryType, copy.srcHost, copy.srcDevice, &from.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!to_array && !address_of(copy.dstMemoryType, copy.dstHost, copy.dstDevice, &to.address)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::size_t width = copy.WidthInBytes;
  const std::size_t height = copy.Height;
  const std::size_t depth = copy.Depth;
  if (from.pitch == 0) from.pitch = width;
  if (to.pitch == 0) to.pitch = width;
  if (from.height == 0) from.height = height;
  if (to.height == 0) to.height = height;
  *operation = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .bytes = width * height * depth};
  if (from_array || to_array) return CUDA_SUCCESS;
  from.address += (copy.srcZ * from.height + copy.srcY) * from.pitch + copy.srcXInBytes;
  to.address += (copy.dstZ * to.height + copy.dstY) * to.pitch + copy.dstXInBytes;
  operation->copy_kind = KindOf(IsDeviceMemory(to.address), IsDeviceMemory(from.address));
  operation->effect = [=] { MoveRows(to, from, width, height, depth); };
  return CUDA_SUCCESS;
}

Operation DescribeFill(CUdeviceptr address, std::size_t pitch, unsigned value, unsigned element, std::size_t width,
                       std::size_t height) {
  return {.type = CU_GRAPH_NODE_TYPE_MEMSET, .bytes = width * element * height, .effect = [=] {
            Fill(address, pitch, value, element, width, height);
          }};
}

namespace {

CUresult Move(CUstream stream, std::uintptr_t to, std::uintptr_t from, std::size_t bytes) {
  SIMGPU_ENTER();
  if (bytes == 0) return CUDA_SUCCESS;
  if (to == 0 || from == 0) return CUDA_ERROR_INVALID_VALUE;
  return Submit(stream, DescribeMove(to, from, bytes));
}

template <typename Pointer>
std::uintptr_t Address(Pointer pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream) {
  SIMGPU_ENTER();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Operation operation;
  SIMGPU_RETURN_IF_ERROR(DescribeCopy(*copy, &operation));
  return Submit(stream, std::move(operation));
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D whole = {};
  whole.srcXInBytes = copy->srcXInBytes;
  whole.srcY = copy->srcY;
  whole.srcMemoryType = copy->srcMemoryType;
  whole.srcHost = copy->srcHost;
  whole.srcDevice = copy->srcDevice;
  whole.srcArray = copy->srcArray;
  whole.srcPitch = copy->srcPitch;
  whole.dstXInBytes = copy->dstXInBytes;
  whole.dstY = copy->dstY;
  whole.dstMemoryType = copy->dstMemoryType;
  whole.dstHost = copy->dstHost;
  whole.dstDevice = copy->dstDevice;
  whole.dstArray = copy->dstArray;
  whole.dstPitch = copy->dstPitch;
  whole.WidthInBytes = copy->WidthInBytes;
  whole.Height = copy->Height;
  whole.Depth = 1;
  return Copy3D(&whole, stream);
}

CUresult Copy3DPeer(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D whole = {};
  whole.srcXInBytes = copy->srcXInBytes;
  whole.srcY = copy->srcY;
  whole.srcZ = copy->srcZ;
  whole.srcMemoryType = copy->srcMemoryType;
  whole.srcHost = copy->srcHost;
  whole.srcDevice = copy->srcDevice;
  whole.srcPitch = copy->srcPitch;
  whole.srcHeight = copy->srcHeight;
  whole.dstXInBytes = copy->dstXInBytes;
  whole.dstY = copy->dstY;
  whole.dstZ = copy->dstZ;
  whole.dstMemoryType = copy->dstMemoryType;
  whole.dstHost = copy->dstHost;
  whole.dstDevice = copy->dstDevice;
  whole.dstPitch = copy->dstPitch;
  whole.dstHeight = copy->dstHeight;
  whole.WidthInBytes = copy->WidthInBytes;
  whole.Height = copy->Height;
  whole.Depth = copy->Depth;
  return Copy3D(&whole, stream);
}

CUresult Set(CUstream stream, CUdeviceptr address, std::size_t pitch, unsigned value, unsigned element,
             std::size_t width, std::size_t height) {
  SIMGPU_ENTER();
  if (width == 0 || height == 0) return CUDA_SUCCESS;
  if (address == 0 || address % element != 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned kept = element == 4 ? value : value & ((1u << (8 * element)) - 1);
  return Submit(stream, DescribeFill(address, pitch, kept, element, width, height));
}

}  // namespace
}  // namespace simgpu

using simgpu::Address;
using simgpu::Move;
using simgpu::Set;

// A synchronous copy has nothing to wait for: the same as an asynchronous one on the default stream. The per-thread
// twins of all of these are generated.

SIMGPU_API cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Move(stream, to, from, bytes);
}
SIMGPU_API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream stream) {
  return Move(stream, to, from, bytes);
}
SIMGPU_API cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return Move(stream, to, Address(from), bytes);
}
SIMGPU_API cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Move(stream, Address(to), from, bytes);
}
SIMGPU_API cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Move(stream, to, from, bytes);
}
SIMGPU_API cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return Move(nullptr, to, from, bytes); }
SIMGPU_API cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return Move(nullptr, to, from, bytes);
}
SIMGPU_API cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return Move(nullptr, to, Address(from), bytes);
}
SIMGPU_API cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) { return Move(nullptr, Address(to), from, bytes); }
SIMGPU_API cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) { return Move(nullptr, to, from, bytes); }

SIMGPU_API cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) { return simgpu::Copy2D(copy, stream); }
SIMGPU_API cuMemcpy2D(const CUDA_MEMCPY2D* copy) { return simgpu::Copy2D(copy, nullptr); }
SIMGPU_API cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* copy) { return simgpu::Copy2D(copy, nullptr); }
SIMGPU_API cuMemcpy3DAsync(const CUDA_MEMCPY3D* copy, CUstream stream) { return simgpu::Copy3D(copy, stream); }
SIMGPU_API cuMemcpy3D(const CUDA_MEMCPY3D* copy) { return simgpu::Copy3D(copy, nullptr); }
SIMGPU_API cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return simgpu::Copy3DPeer(copy, stream);
}
SIMGPU_API cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) { return simgpu::Copy3DPeer(copy, nullptr); }

SIMGPU_API cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* bytes, size_t count, CUmemcpyAttributes*,
                              size_t*, size_t, CUstream stream) {  // v2
  if (count > 0 && (to == nullptr || from == nullptr || bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) SIMGPU_RETURN_IF_ERROR(Move(stream, to[i], from[i], bytes[i]));
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemsetD8(CUdeviceptr at, unsigned char value, size_t n) { return Set(nullptr, at, 0, value, 1, n, 1); }
SIMGPU_API cuMemsetD16(CUdeviceptr at, unsigned short value, size_t n) { return Set(nullptr, at, 0, value, 2, n, 1); }
SIMGPU_API cuMemsetD32(CUdeviceptr at, unsigned value, size_t n) { return Set(nullptr, at, 0, value, 4, n, 1); }
SIMGPU_API cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t n, CUstream stream) {
  return Set(stream, at, 0, value, 1, n, 1);
}
SIMGPU_API cuMemsetD16Async(CUdeviceptr at, unsigned short value, size_t n, CUstream stream) {
  return Set(stream, at, 0, value, 2, n, 1);
}
SIMGPU_API cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t n, CUstream stream) {
  return Set(stream, at, 0, value, 4, n, 1);
}
SIMGPU_API cuMemsetD2D8(CUdeviceptr at, size_t pitch, unsigned char value, size_t width, size_t height) {
  return Set(nullptr, at, pitch, value, 1, width, height);
}
SIMGPU_API cuMemsetD2D16(CUdeviceptr at, size_t pitch, unsigned short value, size_t width, size_t height) {
  return Set(nullptr, at, pitch, value, 2, width, height);
}
SIMGPU_API cuMemsetD2D32(CUdeviceptr at, size_t pitch, unsigned value, size_t width, size_t height) {
  return Set(nullptr, at, pitch, value, 4, width, height);
}
SIMGPU_API cuMemsetD2D8Async(CUdeviceptr at, size_t pitch, unsigned char value, size_t width, size_t height,
                             CUstream stream) {
  return Set(stream, at, pitch, value, 1, width, height);
}
SIMGPU_API cuMemsetD2D16Async(CUdeviceptr at, size_t pitch, unsigned short value, size_t width, size_t height,
                              CUstream stream) {
  return Set(stream, at, pitch, value, 2, width, height);
}
SIMGPU_API cuMemsetD2D32Async(CUdeviceptr at, size_t pitch, unsigned value, size_t width, size_t height,
                              CUstream stream) {
  return Set(stream, at, pitch, value, 4, width, height);
}

// ---- Hints: where memory is has no meaning here.

SIMGPU_API cuMemPrefetchAsync(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream stream) {  // v2
  return simgpu::Submit(stream, {});
}
SIMGPU_API cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) {  // v2
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
#undef cuMemPrefetchAsync
#undef cuMemAdvise
SIMGPU_API cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream stream) { return simgpu::Submit(stream, {}); }
SIMGPU_API cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
