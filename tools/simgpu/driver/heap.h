// Hands out parts of larger chunks: small linear allocations share chunks of a context, and a stream-ordered pool's
// allocations those of the pool. Best fit, lowest address first: deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace simgpu {

class ChunkHeap {
 public:
  struct Chunk {
    std::uintptr_t base;
    std::size_t bytes;
  };

  // 0: no chunk has that much in one piece. `bytes` is a multiple of the caller's granularity.
  std::uintptr_t Allocate(std::size_t bytes);
  void Free(std::uintptr_t address, std::size_t bytes);
  void AddChunk(Chunk chunk);
  // The chunk that an address lies in.
  Chunk ChunkOf(std::uintptr_t address) const;
  // Takes out an empty chunk, the highest one; none: no chunk is empty.
  std::optional<Chunk> RemoveEmptyChunk();
  std::vector<Chunk> RemoveAll();
  std::size_t total_bytes() const { return total_bytes_; }

 private:
  struct Part {
    std::size_t bytes;
    std::map<std::uintptr_t, std::size_t> free;
  };
  std::map<std::uintptr_t, Part> chunks_;
  std::size_t total_bytes_ = 0;
};

}  // namespace simgpu
