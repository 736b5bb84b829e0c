// The lives of a device's blocks, from allocation to free, with everything that the ledger says about each of them.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ledger/attribution/address_index.h"
#include "ledger/attribution/category.h"
#include "ledger/attribution/phase_timeline.h"
#include "ledger/format/ledger_file.h"
#include "ledger/replay/driver_memory.h"
#include "ledger/replay/owner.h"

namespace ledger::attribution {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

// Slots are those of the ledger.
struct Life {
  std::uint64_t begin = 0;  // the allocation
  std::uint64_t end = kNever;
  std::uint64_t bytes = 0;
  std::uint32_t facts = 0;        // index; 0: none
  std::uint32_t begin_phase = 0;  // indices of PhaseTimeline::intervals()
  std::uint32_t end_phase = kNoPhase;
  Category category = Category::kUnknown;
  Evidence evidence = Evidence::kNone;
  Role role = Role::kNone;

  bool AliveAt(std::uint64_t slot) const { return begin <= slot && slot < end; }
};

// Does it end in the backward that its phase leads to?
bool DiesInNextBackward(const Life& life, const PhaseTimeline& phases);

// Alive for a whole step after the one in which it was made, or at the end.
bool SpansSteps(const Life& life, const PhaseTimeline& phases);

// What is said about a block beyond its allocation. Slots of the records; kNever: none.
struct Facts {
  std::uint64_t name = kNever;  // the most telling of its names
  std::uint64_t tag = kNever;
  std::uint64_t saved = kNever;   // by a node that holds it itself
  std::uint64_t packed = kNever;  // by a node whose hooks took it over
  std::uint64_t call = kNever;    // a collective
  std::uint64_t owner = kNever;   // index of the life of the parameter that a gradient or state belongs to
  std::uint64_t requested = 0;    // bytes, where the op adapter came after the block and looked it up; 0: not said so
  std::uint32_t names = 0;
  Role role = Role::kNone;  // in that collective
  bool saved_as_leaf = false;
  bool has_gradient = false;  // a gradient was said to belong to it
};

// A record that spoke of a block: a name, or a collective once for each of its buffers.
struct Mention {
  std::uint64_t slot = 0;
  std::uint64_t owner = kNever;  // of a name: index of the life that it says its block belongs to
  std::uint32_t facts = 0;       // index; 0: no block was alive there
};

struct DeviceLives {
  std::vector<Life> lives;  // by begin
  std::vector<Facts> facts = std::vector<Facts>(1);
  std::vector<Mention> mentions;  // in order
  // What happened, in order: index of a life, twice, and one more for its end.
  std::vector<std::uint64_t> events;
  std::vector<std::uint64_t> exhausted;  // slots at which the allocator gave up

  const Facts& FactsOf(const Life& life) const { return facts[life.facts]; }
};

// Statements about addresses at which nothing was alive: what was freed in the meantime, or what the framework's
// allocator did not hand out.
struct Unplaced {
  std::uint64_t names = 0;
  std::uint64_t tags = 0;
  std::uint64_t saved_tensors = 0;
  std::uint64_t buffers = 0;     // of collectives
  std::uint64_t sizes = 0;       // requested bytes that were looked up later
  std::uint64_t first = kNever;  // slot

  std::uint64_t Sum() const { return names + tags + saved_tensors + buffers + sizes; }
};

// Reads a ledger once.
class LifeCollector {
 public:
  // `tells_blocks`: on which devices the framework's allocator tells of its blocks. On the others, the framework's
  // driver allocations take their place.
  LifeCollector(const format::LedgerFile& file, const PhaseTimeline& phases,
                const std::array<bool, replay::kMaxDevices>& tells_blocks);

  void Collect();

  // Null where nothing was allocated.
  DeviceLives* device(std::int8_t device);
  const DeviceLives* device(std::int8_t device) const { return const_cast<LifeCollector*>(this)->device(device); }
  const std::vector<std::int8_t>& devices() const { return devices_seen_; }
  const Unplaced& unplaced() const { return unplaced_; }

 private:
  struct Device {
    DeviceLives lives;
    absl::flat_hash_map<std::uint64_t, std::uint64_t> alive;  // address → index of the life
    AddressIndex index;                                       // of `alive`, once it was asked for
    bool indexed = false;
  };

  Device& At(std::int8_t device);
  void EnterPhase(std::uint64_t slot);
  void Apply(const format::Slot& slot, std::uint64_t index);
  void ApplyRare(const format::Slot& slot, std::uint64_t index);
  void ApplyDriver(const format::Slot& slot, std::uint64_t index);
  void Begin(std::int8_t device, std::uint64_t address, std::uint64_t bytes, std::uint64_t slot);
  void End(std::int8_t device, std::uint64_t address, std::uint64_t slot);
  void EndLife(Device& device, std::uint64_t life, std::uint64_t slot);
  void EndAll(std::int8_t device, std::uint64_t slot);
  // The life that contains the address; null where there is none.
  Life* Find(Device& device, std::uint64_t address);
  // Null where there is none.
  Facts* FactsAt(std::int8_t device, std::uint64_t address);
  void Miss(std::uint64_t Unplaced::*kind, std::uint64_t slot);
  // Index of the life of the block that a name says its own belongs to; kNever: none.
  std::uint64_t OwnerOf(const record::Name& name);
  void Mentions(std::int8_t device, const Facts* facts, std::uint64_t owner, std::uint64_t slot);
  void ApplyName(const record::Name& name, std::uint64_t slot);
  void ApplyTag(const record::Tag& tag, std::uint64_t slot, bool set);
  void ApplySaved(const record::SavedTensor& saved, std::uint64_t slot);
  void ApplyCollective(const record::Collective& collective, std::uint64_t slot);
  void Involve(std::int8_t device, std::uint64_t address, Role role, std::uint64_t slot);

  const format::LedgerFile& file_;
  const PhaseTimeline& phases_;
  std::uint32_t phase_ = 0;      // of the record that is read
  std::uint64_t phase_end_ = 0;  // slot
  const std::array<bool, replay::kMaxDevices> tells_blocks_;
  const replay::OwnerTable owners_;
  std::array<std::unique_ptr<Device>, replay::kMaxDevices> devices_;
  std::vector<std::int8_t> devices_seen_;
  Unplaced unplaced_;
};

}  // namespace ledger::attribution
