#include "tools/simgpu/driver/heap.h"

#include <iterator>

namespace simgpu {

std::uintptr_t ChunkHeap::Allocate(std::size_t bytes) {
  Part* best_part = nullptr;
  std::map<std::uintptr_t, std::size_t>::iterator best;
  for (auto& [base, part] : chunks_) {
    for (auto range = part.free.begin(); range != part.free.end(); ++range) {
      if (range->second < bytes || (best_part != nullptr && range->second >= best->second)) continue;
      best_part = &part;
      best = range;
    }
  }
  if (best_part == nullptr) return 0;
  const std::uintptr_t address = best->first;
  const std::size_t rest = best->second - bytes;
  best_part->free.erase(best);
  if (rest > 0) best_part->free.emplace(address + bytes, rest);
  return address;
}

void ChunkHeap::Free(std::uintptr_t address, std::size_t bytes) {
  auto& free = std::prev(chunks_.upper_bound(address))->second.free;
  auto next = free.lower_bound(address);
  if (next != free.end() && next->first == address + bytes) {
    bytes += next->second;
    next = free.erase(next);
  }
  if (next != free.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second == address) {
      previous->second += bytes;
      return;
    }
  }
  free.emplace(address, bytes);
}

void ChunkHeap::AddChunk(Chunk chunk) {
  Part& part = chunks_[chunk.base];
  part.bytes = chunk.bytes;
  part.free.emplace(chunk.base, chunk.bytes);
  total_bytes_ += chunk.bytes;
}

ChunkHeap::Chunk ChunkHeap::ChunkOf(std::uintptr_t address) const {
  const auto found = std::prev(chunks_.upper_bound(address));
  return {found->first, found->second.bytes};
}

std::optional<ChunkHeap::Chunk> ChunkHeap::RemoveEmptyChunk() {
  for (auto it = chunks_.rbegin(); it != chunks_.rend(); ++it) {
    const auto& [base, part] = *it;
    if (part.free.size() != 1 || part.free.begin()->second != part.bytes) continue;
    const Chunk chunk = {base, part.bytes};
    chunks_.erase(base);
    total_bytes_ -= chunk.bytes;
    return chunk;
  }
  return std::nullopt;
}

std::vector<ChunkHeap::Chunk> ChunkHeap::RemoveAll() {
  std::vector<Chunk> all;
  for (const auto& [base, part] : chunks_) all.push_back({base, part.bytes});
  chunks_.clear();
  total_bytes_ = 0;
  return all;
}

}  // namespace simgpu
