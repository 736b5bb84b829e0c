// Address space for device memory: addresses without pages.
//
// Ranges begin at an address that is the same in every run, and a range that is given back is the next to be handed out
// for its size: the same program sees the same addresses again, and sees addresses reused, as on a device.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

// Reads as zeros; a page costs memory once it is written to. 0: no address space left. `alignment` is a power of two of
// at least a page, `bytes` a multiple of it.
std::uintptr_t ReserveAddresses(std::size_t bytes, std::size_t alignment);
// Drops the content; the addresses may be handed out again.
void ReleaseAddresses(std::uintptr_t address, std::size_t bytes);

// Zeroes a range by giving its whole pages back.
void ZeroRange(std::uintptr_t address, std::size_t bytes);

// Backs a reserved range by a new file in memory, keeping its content, so that it can be mapped again elsewhere.
// Returns the file's descriptor, -1 with errno where that failed.
int ShareRange(std::uintptr_t address, std::size_t bytes);
// Maps such a file at a reserved range; false with errno where that failed.
bool MapShared(std::uintptr_t address, std::size_t bytes, int fd, std::size_t offset);
// Puts anonymous memory, zeroed, back at a range that a file was mapped at.
void UnmapShared(std::uintptr_t address, std::size_t bytes);

}  // namespace simgpu
