#include "tools/simgpu/nccl/memory.h"

#include "tools/simgpu/nccl/driver.h"
#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

constexpr std::size_t kMiB = 1 << 20;

// The assumptions of a profile that says nothing. A receiver holds the rings of all three protocols of a channel (LL
// 0.5, LL128 4.7, Simple 4 MiB), a sender its flags; either is rounded up to the 2 MiB granularity of cuMemCreate.
struct Sizes {
  std::uint64_t channels = ProfileValue("nccl.channels", 24);
  std::uint64_t p2p_channels = ProfileValue("nccl.p2p_channels", 32);
  std::uint64_t receive_bytes = ProfileValue("nccl.channel_recv_bytes", 10 * kMiB);
  std::uint64_t send_bytes = ProfileValue("nccl.channel_send_bytes", 2 * kMiB);
  std::uint64_t core_device_bytes = ProfileValue("nccl.comm_device_bytes", 4 * kMiB);
  std::uint64_t core_host_bytes = ProfileValue("nccl.comm_host_bytes", 1 * kMiB);
};

const Sizes& GetSizes() {
  static const Sizes sizes;
  return sizes;
}

ncclResult_t CudaFailure(const char* call, CUresult result, std::size_t bytes, CUdevice device) {
  char text[64];
  return Fail(ncclUnhandledCudaError, "%s of %zu bytes on device %d failed: %s", call, bytes, device,
              Describe(result, text));
}

}  // namespace

ncclResult_t AllocateDevice(CUdevice device, std::size_t* bytes, CUdeviceptr* address) {
  const Driver* driver = GetDriver();
  if (driver == nullptr) return ncclSystemError;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t granularity = 0;
  CUresult result = driver->cuMemGetAllocationGranularity_(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (result != CUDA_SUCCESS) return CudaFailure("cuMemGetAllocationGranularity", result, *bytes, device);
  const std::size_t size = (*bytes + granularity - 1) / granularity * granularity;

  CUmemGenericAllocationHandle handle = 0;
  result = driver->cuMemCreate_(&handle, size, &properties, 0);
  if (result != CUDA_SUCCESS) return CudaFailure("cuMemCreate", result, size, device);
  CUdeviceptr base = 0;
  result = driver->cuMemAddressReserve_(&base, size, granularity, 0, 0);
  if (result != CUDA_SUCCESS) {
    driver->cuMemRelease_(handle);
    return CudaFailure("cuMemAddressReserve", result, size, device);
  }
  const CUmemAccessDesc access{.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  const char* call = "cuMemMap";
  result = driver->cuMemMap_(base, size, 0, handle, 0);
  if (result == CUDA_SUCCESS) {
    call = "cuMemSetAccess";
    result = driver->cuMemSetAccess_(base, size, &access, 1);
    if (result != CUDA_SUCCESS) driver->cuMemUnmap_(base, size);
  }
  if (result != CUDA_SUCCESS) {
    driver->cuMemAddressFree_(base, size);
    driver->cuMemRelease_(handle);
    return CudaFailure(call, result, size, device);
  }
  *bytes = size;
  *address = base;
  return ncclSuccess;
}

ncclResult_t FreeDevice(CUdeviceptr address) {
  const Driver* driver = GetDriver();
  if (driver == nullptr) return ncclSystemError;
  // Nobody kept the handle: it is taken anew from the address, so there are two references to give back.
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  CUresult result = driver->cuMemRetainAllocationHandle_(&handle, reinterpret_cast<void*>(address));
  if (result == CUDA_SUCCESS) result = driver->cuMemRelease_(handle);
  if (result == CUDA_SUCCESS) result = driver->cuMemGetAddressRange_(&base, &size, address);
  if (result == CUDA_SUCCESS) result = driver->cuMemUnmap_(address, size);
  if (result == CUDA_SUCCESS) result = driver->cuMemRelease_(handle);
  if (result == CUDA_SUCCESS) result = driver->cuMemAddressFree_(address, size);
  if (result == CUDA_SUCCESS) return ncclSuccess;
  char text[64];
  return Fail(ncclUnhandledCudaError, "cannot free the device memory at 0x%llx: %s", address, Describe(result, text));
}

Connections::Connections(CUcontext context, CUdevice device) : context_(context), device_(device) {}

Connections::~Connections() {
  ContextScope scope(context_);
  for (const auto& [key, addresses] : buffers_) {
    for (const CUdeviceptr address : addresses) FreeDevice(address);
  }
}

ncclResult_t Connections::Connect(Graph graph, Direction direction, int peer) {
  std::lock_guard lock(mutex_);
  const auto [place, fresh] = buffers_.try_emplace(Key(graph, direction, peer));
  if (!fresh) return ncclSuccess;
  const Sizes& sizes = GetSizes();
  const std::uint64_t channels = graph == Graph::kRing ? sizes.channels : sizes.p2p_channels;
  ContextScope scope(context_);
  std::uint64_t total = 0;
  for (std::uint64_t channel = 0; channel < channels; ++channel) {
    std::size_t bytes = direction == Direction::kReceive ? sizes.receive_bytes : sizes.send_bytes;
    CUdeviceptr address = 0;
    if (const ncclResult_t result = AllocateDevice(device_, &bytes, &address); result != ncclSuccess) {
      for (const CUdeviceptr done : place->second) FreeDevice(done);
      buffers_.erase(place);
      return result;
    }
    place->second.push_back(address);
    total += bytes;
  }
  bytes_ += total;
  return ncclSuccess;
}

std::uint64_t Connections::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

ncclResult_t CoreMemory::Allocate(CUcontext context, CUdevice device, std::unique_ptr<CoreMemory>* memory) {
  const Driver* driver = GetDriver();
  if (driver == nullptr) return ncclSystemError;
  ContextScope scope(context);
  std::unique_ptr<CoreMemory> core(new CoreMemory(context));
  // One allocation per granule, as several small structures of genuine NCCL take one each.
  constexpr std::size_t kPiece = 2 * kMiB;
  while (core->device_bytes_ < GetSizes().core_device_bytes) {
    std::size_t bytes = kPiece;
    CUdeviceptr address = 0;
    if (const ncclResult_t result = AllocateDevice(device, &bytes, &address); result != ncclSuccess) return result;
    core->device_.push_back(address);
    core->device_bytes_ += bytes;
  }
  const std::size_t host_bytes = GetSizes().core_host_bytes;
  if (host_bytes > 0) {
    const CUresult result = driver->cuMemHostAlloc_(&core->host_, host_bytes, CU_MEMHOSTALLOC_DEVICEMAP);
    if (result != CUDA_SUCCESS) return CudaFailure("cuMemHostAlloc", result, host_bytes, device);
  }
  *memory = std::move(core);
  return ncclSuccess;
}

CoreMemory::~CoreMemory() {
  ContextScope scope(context_);
  for (const CUdeviceptr address : device_) FreeDevice(address);
  if (host_ != nullptr) GetDriver()->cuMemFreeHost_(host_);
}

}  // namespace simgpu::nccl
