// Virtual memory management: physical memory (handles), address ranges, and the mappings between them.
//
// Physical memory lives as long as something refers to it: handles (create, import, retain) and mappings alike. Memory
// that is mapped twice, exported or imported is backed by a file in memory, so that its mappings really are one memory.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <unordered_set>

#include "tools/simgpu/driver/address_space.h"
#include "tools/simgpu/driver/context.h"
#include "tools/simgpu/driver/memory.h"

namespace simgpu {
namespace {

struct Physical {
  std::uint64_t bytes;
  CUmemAllocationProp properties;
  Device* device;  // null: on the host
  bool imported;   // another process is charged for it
  int handles = 1;
  int mappings = 0;
  int fd = -1;  // once shared
};

struct Mapping {
  std::uint64_t bytes;
  std::uint64_t offset;
  Physical* physical;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};

// What an exported file holds behind its memory.
struct Trailer {
  std::uint64_t magic;
  std::uint64_t bytes;
  std::int32_t physical_device;
};
constexpr std::uint64_t kTrailerMagic = 0x6d6d7675706d6973;
constexpr std::size_t kPage = 4096;

std::unordered_set<Physical*>& Handles() {
  static auto* handles = new std::unordered_set<Physical*>;
  return *handles;
}

std::map<std::uintptr_t, std::size_t>& Reservations() {
  static auto* reservations = new std::map<std::uintptr_t, std::size_t>;
  return *reservations;
}

std::map<std::uintptr_t, Mapping>& Mappings() {
  static auto* mappings = new std::map<std::uintptr_t, Mapping>;
  return *mappings;
}

// Null where the handle is unknown or was released for the last time.
Physical* PhysicalOf(CUmemGenericAllocationHandle handle) {
  auto* physical = reinterpret_cast<Physical*>(handle);
  return Handles().count(physical) != 0 ? physical : nullptr;
}

CUmemGenericAllocationHandle HandleOf(Physical* physical) {
  return reinterpret_cast<CUmemGenericAllocationHandle>(physical);
}

void DropIfUnused(Physical* physical) {
  if (physical->handles == 0) Handles().erase(physical);
  if (physical->handles > 0 || physical->mappings > 0) return;
  if (physical->device != nullptr && !physical->imported) DischargeDevice(*physical->device, physical->bytes);
  if (physical->fd >= 0) close(physical->fd);
  delete physical;
}

std::size_t Granularity() { return GetProfile()->Get("memory.granularity"); }

// Gives the memory a file, and moves the one mapping that it may have onto it.
CUresult Share(Physical* physical) {
  if (physical->fd >= 0) return CUDA_SUCCESS;
  const auto mapping = std::find_if(Mappings().begin(), Mappings().end(),
                                    [physical](const auto& entry) { return entry.second.physical == physical; });
  std::uintptr_t staging = 0;
  std::uintptr_t address = 0;
  if (mapping != Mappings().end() && mapping->second.bytes == physical->bytes) {
    address = mapping->first;
  } else {
    // Not mapped, or in part: nothing or little has been written to it. A file of its own, then the part moves over.
    staging = ReserveAddresses(physical->bytes, Granularity());
    if (staging == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    address = staging;
    if (mapping != Mappings().end()) return CUDA_ERROR_NOT_SUPPORTED;
  }
  physical->fd = ShareRange(address, physical->bytes);
  if (staging != 0) {
    UnmapShared(staging, physical->bytes);
    ReleaseAddresses(staging, physical->bytes);
  }
  if (physical->fd < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  const Trailer trailer = {.magic = kTrailerMagic,
                           .bytes = physical->bytes,
                           .physical_device = physical->device == nullptr ? -1 : physical->device->physical};
  const auto at = static_cast<off_t>(physical->bytes);
  const bool written = pwrite(physical->fd, &trailer, sizeof trailer, at) == static_cast<ssize_t>(sizeof trailer);
  return written ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

// The reservation that a whole range lies in.
bool IsReserved(std::uintptr_t address, std::size_t bytes) {
  auto found = Reservations().upper_bound(address);
  if (found == Reservations().begin()) return false;
  --found;
  return address + bytes <= found->first + found->second;
}

bool OverlapsMapping(std::uintptr_t address, std::size_t bytes) {
  auto next = Mappings().lower_bound(address);
  if (next != Mappings().end() && next->first < address + bytes) return true;
  if (next == Mappings().begin()) return false;
  const auto previous = std::prev(next);
  return previous->first + previous->second.bytes > address;
}

bool IsHost(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

}  // namespace
}  // namespace simgpu

using simgpu::Guard;
using simgpu::Mapping;
using simgpu::Mappings;
using simgpu::Physical;
using simgpu::PhysicalOf;
using simgpu::Reservations;

// ---- Physical memory

SIMGPU_API cuMemGetAllocationGranularity(size_t* granularity, const CUmemAllocationProp* properties,
                                         CUmemAllocationGranularity_flags) {
  SIMGPU_ENTER();
  if (granularity == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *granularity = simgpu::Granularity();
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes, const CUmemAllocationProp* properties,
                       unsigned long long flags) {
  SIMGPU_ENTER();
  if (handle == nullptr || properties == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0 || bytes % simgpu::Granularity() != 0) return CUDA_ERROR_INVALID_VALUE;
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if ((properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;  // fabric handles need a fabric
  }
  const Guard guard;
  simgpu::Device* device = nullptr;
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    device = simgpu::FindDevice(properties->location.id);
    if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    SIMGPU_RETURN_IF_ERROR(simgpu::ChargeDevice(*device, bytes));
  } else if (!simgpu::IsHost(properties->location)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  auto* physical = new Physical{.bytes = bytes, .properties = *properties, .device = device, .imported = false};
  simgpu::Handles().insert(physical);
  *handle = simgpu::HandleOf(physical);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Physical* physical = PhysicalOf(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  --physical->handles;
  simgpu::DropIfUnused(physical);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* pointer) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  auto found = Mappings().upper_bound(address);
  if (found == Mappings().begin()) return CUDA_ERROR_INVALID_VALUE;
  --found;
  if (address >= found->first + found->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  Physical* physical = found->second.physical;
  ++physical->handles;
  simgpu::Handles().insert(physical);  // the last handle may have been released while the mapping stayed
  *handle = simgpu::HandleOf(physical);
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                  CUmemGenericAllocationHandle handle) {
  SIMGPU_ENTER();
  const Guard guard;
  const Physical* physical = PhysicalOf(handle);
  if (properties == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = physical->properties;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                        CUmemAllocationHandleType type, unsigned long long flags) {
  SIMGPU_ENTER();
  if (shareable == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Guard guard;
  Physical* physical = PhysicalOf(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if ((physical->properties.requestedHandleTypes & type) == 0) return CUDA_ERROR_NOT_SUPPORTED;
  SIMGPU_RETURN_IF_ERROR(simgpu::Share(physical));
  const int fd = dup(physical->fd);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareable) = fd;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shareable,
                                          CUmemAllocationHandleType type) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const int fd = dup(static_cast<int>(reinterpret_cast<std::intptr_t>(shareable)));
  if (fd < 0) return CUDA_ERROR_INVALID_VALUE;
  struct stat status;
  simgpu::Trailer trailer = {};
  if (fstat(fd, &status) != 0 || status.st_size < static_cast<off_t>(sizeof trailer) ||
      pread(fd, &trailer, sizeof trailer, status.st_size - static_cast<off_t>(sizeof trailer)) !=
          static_cast<ssize_t>(sizeof trailer) ||
      trailer.magic != simgpu::kTrailerMagic) {
    close(fd);
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Guard guard;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  simgpu::Device* device = nullptr;
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
  for (int i = 0; trailer.physical_device >= 0 && i < simgpu::DeviceCount(); ++i) {
    if (simgpu::FindDevice(i)->physical != trailer.physical_device) continue;
    device = simgpu::FindDevice(i);
    properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i};
  }
  auto* physical =
      new Physical{.bytes = trailer.bytes, .properties = properties, .device = device, .imported = true, .fd = fd};
  simgpu::Handles().insert(physical);
  *handle = simgpu::HandleOf(physical);
  return CUDA_SUCCESS;
}

// ---- Addresses

SIMGPU_API cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment, CUdeviceptr,
                               unsigned long long flags) {
  SIMGPU_ENTER();
  if (address == nullptr || flags != 0 || bytes == 0 || bytes % simgpu::kPage != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const std::uintptr_t found = simgpu::ReserveAddresses(bytes, std::max(alignment, simgpu::Granularity()));
  if (found == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Reservations()[found] = bytes;
  *address = found;
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  SIMGPU_ENTER();
  const Guard guard;
  const auto found = Reservations().find(address);
  if (found == Reservations().end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  if (simgpu::OverlapsMapping(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  Reservations().erase(found);
  simgpu::ReleaseAddresses(address, bytes);
  return CUDA_SUCCESS;
}

// ---- Mappings

SIMGPU_API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags) {
  SIMGPU_ENTER();
  const Guard guard;
  Physical* physical = PhysicalOf(handle);
  if (physical == nullptr || flags != 0 || bytes == 0 || bytes % simgpu::Granularity() != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (offset > physical->bytes || bytes > physical->bytes - offset) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::IsReserved(address, bytes) || simgpu::OverlapsMapping(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  // A second mapping must show the same memory. One that maps only a part will not be able to move later, so it shares
  // from the start.
  if (physical->mappings > 0 || bytes != physical->bytes) SIMGPU_RETURN_IF_ERROR(simgpu::Share(physical));
  if (physical->fd >= 0 && !simgpu::MapShared(address, bytes, physical->fd, offset)) return CUDA_ERROR_MAP_FAILED;
  ++physical->mappings;
  Mappings()[address] = {.bytes = bytes, .offset = offset, .physical = physical};
  simgpu::AddAllocation({.address = address,
                         .bytes = bytes,
                         .kind = simgpu::MemoryKind::kMapped,
                         .context = nullptr,
                         .device = physical->device});
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemUnmap(CUdeviceptr address, size_t bytes) {
  SIMGPU_ENTER();
  const Guard guard;
  // The range must be covered by whole mappings.
  std::uintptr_t next = address;
  for (auto it = Mappings().find(address); it != Mappings().end() && it->first == next && next < address + bytes;
       ++it) {
    next += it->second.bytes;
  }
  if (bytes == 0 || next != address + bytes) return CUDA_ERROR_INVALID_VALUE;
  for (auto it = Mappings().find(address); it != Mappings().end() && it->first < address + bytes;) {
    const Mapping mapping = it->second;
    simgpu::RemoveAllocation(it->first);
    if (mapping.physical->fd >= 0) {
      simgpu::UnmapShared(it->first, mapping.bytes);
    } else {
      simgpu::ZeroRange(it->first, mapping.bytes);
    }
    --mapping.physical->mappings;
    simgpu::DropIfUnused(mapping.physical);
    it = Mappings().erase(it);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* descriptions, size_t count) {
  SIMGPU_ENTER();
  if (descriptions == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  std::uintptr_t next = address;
  for (auto it = Mappings().find(address); it != Mappings().end() && it->first == next && next < address + bytes;
       ++it) {
    next += it->second.bytes;
    it->second.access = descriptions[0].flags;
  }
  return bytes > 0 && next >= address + bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr address) {
  SIMGPU_ENTER();
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  auto found = Mappings().upper_bound(address);
  if (found == Mappings().begin()) return CUDA_ERROR_INVALID_VALUE;
  --found;
  if (address >= found->first + found->second.bytes) return CUDA_ERROR_INVALID_VALUE;
  *flags = found->second.access;
  return CUDA_SUCCESS;
}
