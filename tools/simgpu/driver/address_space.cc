#include "tools/simgpu/driver/address_space.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

namespace simgpu {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::uintptr_t kFirst = 0x200000000000;  // far from where Linux puts programs, heaps, libraries and stacks

// Device memory is sparse, must not be filled up to huge pages, and has nothing to say in a core dump.
void Advise(void* address, std::size_t bytes) {
  madvise(address, bytes, MADV_NOHUGEPAGE);
  madvise(address, bytes, MADV_DONTDUMP);
}

void* MapAnonymous(void* address, std::size_t bytes, int flags) {
  void* memory =
      mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
  if (memory != MAP_FAILED) Advise(memory, bytes);
  return memory;
}

// With the driver's lock held.
struct Cache {
  std::uintptr_t next = kFirst;
  std::map<std::size_t, std::vector<std::uintptr_t>> released;  // by size, last in first out
};

Cache& GetCache() {
  static auto* cache = new Cache;
  return *cache;
}

}  // namespace

std::uintptr_t ReserveAddresses(std::size_t bytes, std::size_t alignment) {
  Cache& cache = GetCache();
  std::vector<std::uintptr_t>& released = cache.released[bytes];
  for (auto it = released.rbegin(); it != released.rend(); ++it) {
    if (*it % alignment != 0) continue;
    const std::uintptr_t address = *it;
    released.erase(std::next(it).base());
    return address;
  }
  const std::uintptr_t wanted = (cache.next + alignment - 1) / alignment * alignment;
  void* memory = MapAnonymous(reinterpret_cast<void*>(wanted), bytes, MAP_FIXED_NOREPLACE);
  if (memory == reinterpret_cast<void*>(wanted)) {
    cache.next = wanted + bytes;
    return wanted;
  }
  // Somebody else's mapping is there (or the kernel knows no MAP_FIXED_NOREPLACE): anywhere, then.
  if (memory != MAP_FAILED) munmap(memory, bytes);
  memory = MapAnonymous(nullptr, bytes + alignment, 0);
  if (memory == MAP_FAILED) return 0;
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t address = (start + alignment - 1) / alignment * alignment;
  if (address > start) munmap(memory, address - start);
  if (start + alignment > address) munmap(reinterpret_cast<void*>(address + bytes), start + alignment - address);
  return address;
}

void ReleaseAddresses(std::uintptr_t address, std::size_t bytes) {
  madvise(reinterpret_cast<void*>(address), bytes, MADV_DONTNEED);
  GetCache().released[bytes].push_back(address);
}

void ZeroRange(std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t end = address + bytes;
  const std::uintptr_t first = std::min(end, (address + kPage - 1) / kPage * kPage);
  const std::uintptr_t last = std::max(first, end / kPage * kPage);
  std::memset(reinterpret_cast<void*>(address), 0, first - address);
  if (last > first) {
    // Of a shared file, DONTNEED would only drop the mapping, and the file would bring the content back.
    if (madvise(reinterpret_cast<void*>(first), last - first, MADV_REMOVE) != 0) {
      madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
  }
  std::memset(reinterpret_cast<void*>(last), 0, end - last);
}

int ShareRange(std::uintptr_t address, std::size_t bytes) {
  const int fd = memfd_create("simgpu", MFD_CLOEXEC);
  if (fd < 0) return -1;
  if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) {
    close(fd);
    return -1;
  }
  // Only pages that were written to can hold anything. mincore doesn't load them.
  std::vector<unsigned char> resident(bytes / kPage);
  if (mincore(reinterpret_cast<void*>(address), bytes, resident.data()) == 0) {
    for (std::size_t page = 0; page < resident.size(); ++page) {
      if ((resident[page] & 1) == 0) continue;
      const void* from = reinterpret_cast<const void*>(address + page * kPage);
      if (pwrite(fd, from, kPage, static_cast<off_t>(page * kPage)) != static_cast<ssize_t>(kPage)) {
        close(fd);
        return -1;
      }
    }
  }
  if (!MapShared(address, bytes, fd, 0)) {
    close(fd);
    return -1;
  }
  return fd;
}

bool MapShared(std::uintptr_t address, std::size_t bytes, int fd, std::size_t offset) {
  void* memory = reinterpret_cast<void*>(address);
  if (mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
           static_cast<off_t>(offset)) == MAP_FAILED) {
    return false;
  }
  Advise(memory, bytes);
  return true;
}

void UnmapShared(std::uintptr_t address, std::size_t bytes) {
  MapAnonymous(reinterpret_cast<void*>(address), bytes, MAP_FIXED);
}

}  // namespace simgpu
