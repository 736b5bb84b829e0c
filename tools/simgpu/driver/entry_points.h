// The table behind cuGetProcAddress. Its rows are generated from CUDA's headers.
#pragma once

#include <cstddef>

namespace simgpu {

struct EntryPoint {
  const char* name;      // without version suffix
  int since;             // version of CUDA, as 1000 * major + 10 * minor
  void (*function)();    // for the legacy default stream
  void (*per_thread)();  // null: the entry point has no such twin
};

// By name, then by version.
extern const EntryPoint kEntryPoints[];
extern const std::size_t kEntryPointCount;

}  // namespace simgpu
