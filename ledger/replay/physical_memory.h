// Physical memory of the virtual memory management API (cuMemCreate, cuMemMap), and where it is mapped.
//
// An object lives as long as somebody holds a reference to its handle or it is mapped somewhere. A handle's value may
// be used again for a new object while a mapping still keeps the old one alive, so objects have an identity of their
// own: the slot of the record that created them.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "interpose/record/record.h"
#include "ledger/replay/owner.h"

namespace ledger::replay {

class PhysicalMemory {
 public:
  struct Object {
    std::uint64_t bytes = 0;
    std::uint64_t slot = 0;  // of its creation: its identity
    std::uint64_t handle = 0;
    std::uint64_t references = 0;
    std::uint64_t mappings = 0;
    std::int8_t device = record::kNoDevice;
    record::Memory memory = record::Memory::kPhysical;
    Owner owner = Owner::kProgram;
  };
  struct Mapping {
    std::uint64_t begin, end;
    std::uint64_t object;
  };

  // A new object with one reference. False when the handle already stood for a referenced object, which is then taken
  // to have lost its references unseen; it goes to `died` if nothing maps it.
  bool Create(const Object& object, std::vector<Object>& died);

  // False when the handle is not known.
  bool Retain(std::uint64_t handle);
  bool Release(std::uint64_t handle, std::vector<Object>& died);

  // False when the handle is not known, or something was mapped there (which is then gone).
  bool Map(std::uint64_t address, std::uint64_t size, std::uint64_t handle, std::vector<Object>& died);
  // False when nothing was mapped there. One call may end several mappings, or a part of one.
  bool Unmap(std::uint64_t address, std::uint64_t size, std::vector<Object>& died);

  // Everything of a device is gone.
  void Reset(std::int8_t device, std::vector<Object>& died);

  const absl::flat_hash_map<std::uint64_t, Object>& objects() const { return objects_; }
  // By address.
  std::vector<Mapping> Mappings() const;

 private:
  struct Piece {
    std::uint64_t end;
    std::uint64_t object;
  };
  using Pieces = absl::btree_map<std::uint64_t, Piece>;  // by begin; they never overlap

  void BuryIfDead(std::uint64_t object, std::vector<Object>& died);
  void SplitAt(std::uint64_t address);

  absl::flat_hash_map<std::uint64_t, Object> objects_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> handles_;  // → the newest object of that handle
  Pieces pieces_;
};

}  // namespace ledger::replay
