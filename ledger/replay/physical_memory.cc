#include "ledger/replay/physical_memory.h"

#include <algorithm>

namespace ledger::replay {

void PhysicalMemory::BuryIfDead(std::uint64_t id, std::vector<Object>& died) {
  const auto object = objects_.find(id);
  if (object == objects_.end() || object->second.references != 0 || object->second.mappings != 0) return;
  const auto handle = handles_.find(object->second.handle);
  if (handle != handles_.end() && handle->second == id) handles_.erase(handle);
  died.push_back(object->second);
  objects_.erase(object);
}

bool PhysicalMemory::Create(const Object& object, std::vector<Object>& died) {
  bool expected = true;
  const auto known = handles_.find(object.handle);
  if (known != handles_.end()) {
    const std::uint64_t old_id = known->second;
    Object& old = objects_[old_id];
    expected = old.references == 0;
    old.references = 0;
    BuryIfDead(old_id, died);
  }
  Object& created = objects_[object.slot] = object;
  created.references = 1;
  created.mappings = 0;
  handles_[object.handle] = object.slot;
  return expected;
}

bool PhysicalMemory::Retain(std::uint64_t handle) {
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return false;
  ++objects_[known->second].references;
  return true;
}

bool PhysicalMemory::Release(std::uint64_t handle, std::vector<Object>& died) {
  const auto known = handles_.find(handle);
  if (known == handles_.end()) return false;
  const std::uint64_t id = known->second;
  Object& object = objects_[id];
  if (object.references == 0) return false;
  --object.references;
  BuryIfDead(id, died);
  return true;
}

void PhysicalMemory::SplitAt(std::uint64_t address) {
  auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return;
  --after;
  if (after->first == address || after->second.end <= address) return;
  const Piece upper = after->second;
  after->second.end = address;
  ++objects_[upper.object].mappings;
  pieces_.emplace(address, upper);
}

bool PhysicalMemory::Map(std::uint64_t address, std::uint64_t size, std::uint64_t handle, std::vector<Object>& died) {
  const auto known = handles_.find(handle);
  if (known == handles_.end() || size == 0 || address + size < address) return false;
  // Counted before anything is unmapped, so that the object cannot die in between.
  const std::uint64_t id = known->second;
  ++objects_[id].mappings;
  const bool overlapped = Unmap(address, size, died);
  pieces_.emplace(address, Piece{address + size, id});
  return !overlapped;
}

bool PhysicalMemory::Unmap(std::uint64_t address, std::uint64_t size, std::vector<Object>& died) {
  const std::uint64_t end = address + size;
  if (size == 0 || end < address) return false;
  SplitAt(address);
  SplitAt(end);
  const auto first = pieces_.lower_bound(address);
  const auto last = pieces_.lower_bound(end);
  if (first == last) return false;
  std::vector<std::uint64_t> ids;
  for (auto piece = first; piece != last; ++piece) ids.push_back(piece->second.object);
  pieces_.erase(first, last);
  for (const std::uint64_t id : ids) {
    --objects_[id].mappings;
    BuryIfDead(id, died);
  }
  return true;
}

void PhysicalMemory::Reset(std::int8_t device, std::vector<Object>& died) {
  std::vector<std::uint64_t> gone;
  for (const auto& [id, object] : objects_) {
    if (object.device == device) gone.push_back(id);
  }
  std::sort(gone.begin(), gone.end());
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    piece =
        std::binary_search(gone.begin(), gone.end(), piece->second.object) ? pieces_.erase(piece) : std::next(piece);
  }
  for (const std::uint64_t id : gone) {
    objects_[id].references = objects_[id].mappings = 0;
    BuryIfDead(id, died);
  }
}

std::vector<PhysicalMemory::Mapping> PhysicalMemory::Mappings() const {
  std::vector<Mapping> mappings;
  mappings.reserve(pieces_.size());
  for (const auto& [begin, piece] : pieces_) mappings.push_back({begin, piece.end, piece.object});
  return mappings;
}

}  // namespace ledger::replay
