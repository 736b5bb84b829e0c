// Notes that the program read device memory back: no kernel has computed what it read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

// Tells the ledger, where one is preloaded, with the place in the program. Without the lock.
void NoteValueRead(std::uintptr_t address, std::size_t bytes);

}  // namespace simgpu
