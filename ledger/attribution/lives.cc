#include "ledger/attribution/lives.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ledger::attribution {

using record::Kind;
using record::NameCategory;

namespace {

// Of several names of one block, that of the larger rank tells what it is. A flat parameter that is a model's is a
// parameter, though a collective fills it.
int Rank(NameCategory category) {
  switch (category) {
    case NameCategory::kParameter:
      return 9;
    case NameCategory::kGradient:
      return 8;
    case NameCategory::kMasterParameter:
      return 7;
    case NameCategory::kOptimizerState:
      return 6;
    case NameCategory::kBuffer:
      return 5;
    case NameCategory::kGatheredParameter:
      return 4;
    case NameCategory::kCommunicationBuffer:
      return 3;
    default:
      return 1;
  }
}

// Which models are trained is known after the first step. Until then, one that was called is taken for one of them.
bool IsCopyOfParameters(const record::Name& name) { return name.category == NameCategory::kBuffer && name.key != 0; }

bool Outranks(const record::Name& name, const record::Name& earlier) {
  // FSDP puts whole parameters into the place of their shards. A look at the models finds them there, and calls them
  // theirs.
  if (name.category == NameCategory::kParameter && earlier.category == NameCategory::kGatheredParameter) return false;
  if (name.category == NameCategory::kParameter && IsCopyOfParameters(earlier)) return false;
  if (IsCopyOfParameters(name) && earlier.category == NameCategory::kParameter) return true;
  return Rank(name.category) > Rank(earlier.category);
}

std::pair<Role, Role> RolesOf(record::Operation operation) {  // of what is sent and what is received
  switch (operation) {
    case record::Operation::kAllGather:
      return {Role::kAllGatherInput, Role::kAllGatherOutput};
    case record::Operation::kReduceScatter:
      return {Role::kReduceScatterInput, Role::kReduceScatterOutput};
    case record::Operation::kAllReduce:
    case record::Operation::kReduce:
      return {Role::kAllReduceBuffer, Role::kAllReduceBuffer};
    case record::Operation::kBroadcast:
      return {Role::kBroadcastBuffer, Role::kBroadcastBuffer};
    case record::Operation::kAllToAll:
      return {Role::kAllToAllBuffer, Role::kAllToAllBuffer};
    case record::Operation::kSend:
    case record::Operation::kReceive:
      return {Role::kPointToPointBuffer, Role::kPointToPointBuffer};
    default:
      return {Role::kOtherCollectiveBuffer, Role::kOtherCollectiveBuffer};
  }
}

// The one that says most, where a buffer has several: an all-gather in place sends a part of its output.
bool Outweighs(Role role, Role other) {
  return other == Role::kNone || role == Role::kAllGatherOutput ||
         (role == Role::kReduceScatterInput && other != Role::kAllGatherOutput);
}

}  // namespace

bool DiesInNextBackward(const Life& life, const PhaseTimeline& phases) {
  return life.end_phase != kNoPhase && life.end_phase == phases.BackwardFrom(life.begin_phase);
}

bool SpansSteps(const Life& life, const PhaseTimeline& phases) {
  if (life.end_phase == kNoPhase) return true;
  const auto& intervals = phases.intervals();
  return intervals[life.end_phase].step > intervals[life.begin_phase].step + 1;
}

LifeCollector::LifeCollector(const format::LedgerFile& file, const PhaseTimeline& phases,
                             const std::array<bool, replay::kMaxDevices>& tells_blocks)
    : file_(file), phases_(phases), phase_end_(phases.End(0)), tells_blocks_(tells_blocks), owners_(file.texts()) {}

void LifeCollector::Collect() {
  const auto slots = file_.slots();
  for (std::uint64_t i = 0; i < slots.size(); ++i) {
    if (slots[i].committed()) [[likely]] {
      if (i >= phase_end_) EnterPhase(i);
      Apply(slots[i], i);
    }
  }
}

void LifeCollector::EnterPhase(std::uint64_t slot) {
  while (phase_end_ <= slot && phase_ + std::size_t{1} < phases_.intervals().size()) phase_end_ = phases_.End(++phase_);
}

DeviceLives* LifeCollector::device(std::int8_t device) {
  return device < 0 || devices_[static_cast<std::size_t>(device)] == nullptr
             ? nullptr
             : &devices_[static_cast<std::size_t>(device)]->lives;
}

LifeCollector::Device& LifeCollector::At(std::int8_t device) {
  auto& state = devices_[static_cast<std::size_t>(device)];
  if (state == nullptr) {
    state = std::make_unique<Device>();
    // Nearly all blocks are on one device. What is reserved in vain is address space.
    state->lives.lives.reserve(file_.counts().blocks);
    state->lives.events.reserve(2 * file_.counts().blocks);
    state->lives.facts.reserve(file_.counts().statements + 1);
    devices_seen_.push_back(device);
  }
  return *state;
}

inline void LifeCollector::Apply(const format::Slot& slot, std::uint64_t index) {
  const std::int8_t device = slot.commit().device;
  switch (slot.kind()) {
    case Kind::kBlockAlloc: {
      const auto& block = slot.As<record::Block>();
      if (device >= 0) Begin(device, block.address, block.size, index);
      return;
    }
    case Kind::kBlockFree:
      if (device >= 0) End(device, slot.As<record::Block>().address, index);
      return;
    case Kind::kRangePush:
    case Kind::kRangePop:
      return;
    case Kind::kSavedTensor:
      ApplySaved(slot.As<record::SavedTensor>(), index);
      return;
    default:
      ApplyRare(slot, index);
  }
}

void LifeCollector::ApplyRare(const format::Slot& slot, std::uint64_t index) {
  switch (slot.kind()) {
    case Kind::kCollective:
      ApplyCollective(slot.As<record::Collective>(), index);
      return;
    case Kind::kName:
      ApplyName(slot.As<record::Name>(), index);
      return;
    case Kind::kTag:
    case Kind::kUntag:
      ApplyTag(slot.As<record::Tag>(), index, slot.kind() == Kind::kTag);
      return;
    case Kind::kAlloc:
    case Kind::kFree:
      ApplyDriver(slot, index);
      return;
    case Kind::kBlockSeen: {
      const auto& seen = slot.As<record::BlockDetail>();
      if (slot.commit().device < 0) return;
      Facts* const facts = FactsAt(slot.commit().device, seen.address);
      if (facts == nullptr) return Miss(&Unplaced::sizes, index);
      facts->requested = seen.requested;
      return;
    }
    case Kind::kBlockOom:
      if (DeviceLives* const lives = device(slot.commit().device)) lives->exhausted.push_back(index);
      return;
    case Kind::kDeviceReset:
      EndAll(slot.commit().device, index);
      return;
    default:
      return;
  }
}

void LifeCollector::ApplyDriver(const format::Slot& slot, std::uint64_t index) {
  const std::int8_t device = slot.commit().device;
  if (device < 0 || tells_blocks_[static_cast<std::size_t>(device)]) return;
  const auto& allocation = slot.As<record::Allocation>();
  if (slot.kind() == Kind::kFree) {
    if (allocation.result == 0) End(device, allocation.address, index);
  } else if (owners_.Find(allocation.owner, slot.commit().layer) == replay::Owner::kCachingAllocator &&
             replay::OnDevice(allocation.memory)) {
    Begin(device, allocation.address, allocation.size, index);
  }
}

void LifeCollector::Begin(std::int8_t ordinal, std::uint64_t address, std::uint64_t bytes, std::uint64_t slot) {
  if (bytes > replay::kMaxAllocationBytes) return;  // replay counts it as implausible
  Device& device = At(ordinal);
  const std::uint64_t life = device.lives.lives.size();
  const auto [entry, added] = device.alive.try_emplace(address, life);
  if (!added) [[unlikely]] {
    EndLife(device, entry->second, slot);
    entry->second = life;
  } else if (device.indexed) {
    device.index.Add(address);
  }
  Life& begun = device.lives.lives.emplace_back();
  begun.begin = slot;
  begun.begin_phase = phase_;
  begun.bytes = bytes;
  device.lives.events.push_back(life << 1);
}

void LifeCollector::End(std::int8_t ordinal, std::uint64_t address, std::uint64_t slot) {
  Device& device = At(ordinal);
  const auto entry = device.alive.find(address);
  if (entry == device.alive.end()) [[unlikely]] {
    return;  // replay counts it
  }
  EndLife(device, entry->second, slot);
  device.alive.erase(entry);
  if (device.indexed) device.index.Remove(address);
}

void LifeCollector::EndLife(Device& device, std::uint64_t life, std::uint64_t slot) {
  device.lives.lives[life].end = slot;
  device.lives.lives[life].end_phase = phase_;
  device.lives.events.push_back(life << 1 | 1);
}

void LifeCollector::EndAll(std::int8_t ordinal, std::uint64_t slot) {
  if (ordinal < 0 || devices_[static_cast<std::size_t>(ordinal)] == nullptr) return;
  Device& device = At(ordinal);
  std::vector<std::uint64_t> ended;
  for (const auto& [address, life] : device.alive) ended.push_back(life);
  std::sort(ended.begin(), ended.end());
  for (const std::uint64_t life : ended) EndLife(device, life, slot);
  device.alive.clear();
  device.index.Clear();
}

Life* LifeCollector::Find(Device& device, std::uint64_t address) {
  auto entry = device.alive.find(address);
  if (entry == device.alive.end()) {
    // Inside of a block: a view, a part of a bucket.
    if (!device.indexed) {
      device.indexed = true;
      for (const auto& [begin, life] : device.alive) device.index.Add(begin);
    }
    const auto begin = device.index.AtOrBelow(address);
    if (!begin) return nullptr;
    entry = device.alive.find(*begin);
    if (entry == device.alive.end()) return nullptr;
  }
  Life& life = device.lives.lives[entry->second];
  const bool inside = address - entry->first < std::max<std::uint64_t>(life.bytes, 1);
  return inside ? &life : nullptr;
}

Facts* LifeCollector::FactsAt(std::int8_t ordinal, std::uint64_t address) {
  if (ordinal < 0) return nullptr;
  Device* const device = devices_[static_cast<std::size_t>(ordinal)].get();
  Life* const life = device == nullptr ? nullptr : Find(*device, address);
  if (life == nullptr) return nullptr;
  if (life->facts == 0) {
    life->facts = static_cast<std::uint32_t>(device->lives.facts.size());
    device->lives.facts.emplace_back();
  }
  return &device->lives.facts[life->facts];
}

void LifeCollector::Miss(std::uint64_t Unplaced::*kind, std::uint64_t slot) {
  ++(unplaced_.*kind);
  unplaced_.first = std::min(unplaced_.first, slot);
}

void LifeCollector::Mentions(std::int8_t ordinal, const Facts* facts, std::uint64_t owner, std::uint64_t slot) {
  DeviceLives* const lives = device(ordinal);
  if (lives == nullptr) return;
  lives->mentions.push_back(
      {slot, owner, facts == nullptr ? 0 : static_cast<std::uint32_t>(facts - lives->facts.data())});
}

std::uint64_t LifeCollector::OwnerOf(const record::Name& name) {
  if (name.belongs_to == 0) return kNever;
  if (name.category == record::NameCategory::kGradient) {
    if (Facts* const facts = FactsAt(name.commit.device, name.belongs_to)) facts->has_gradient = true;
  }
  Device* const device = devices_[static_cast<std::size_t>(name.commit.device)].get();
  const Life* const owner = device == nullptr ? nullptr : Find(*device, name.belongs_to);
  return owner == nullptr ? kNever : static_cast<std::uint64_t>(owner - device->lives.lives.data());
}

void LifeCollector::ApplyName(const record::Name& name, std::uint64_t slot) {
  const std::int8_t ordinal = name.commit.device;
  if (ordinal < 0) return;  // host memory
  const std::uint64_t owned_by = OwnerOf(name);
  Facts* const facts = FactsAt(ordinal, name.address);
  if (facts == nullptr) return Miss(&Unplaced::names, slot);
  ++facts->names;
  if (facts->owner == kNever) facts->owner = owned_by;
  Mentions(ordinal, facts, owned_by, slot);
  if (facts->name == kNever || Outranks(name, file_.slots()[facts->name].As<record::Name>())) {
    facts->name = slot;
  }
}

void LifeCollector::ApplyTag(const record::Tag& tag, std::uint64_t slot, bool set) {
  // The API knows an address, and not of which device; no two devices have the same.
  bool placed = false;
  for (const std::int8_t device : devices_seen_) {
    if (tag.commit.device >= 0 && tag.commit.device != device) continue;
    if (Facts* const facts = FactsAt(device, tag.address)) {
      facts->tag = set ? slot : kNever;
      placed = true;
    }
  }
  if (set && !placed) Miss(&Unplaced::tags, slot);
}

void LifeCollector::ApplySaved(const record::SavedTensor& saved, std::uint64_t slot) {
  if (saved.commit.device < 0) return;
  Facts* const facts = FactsAt(saved.commit.device, saved.address);
  if (facts == nullptr) return Miss(&Unplaced::saved_tensors, slot);
  if ((saved.flags & record::kSavedLeaf) != 0) facts->saved_as_leaf = true;
  std::uint64_t& first = (saved.flags & record::kSavedPacked) != 0 ? facts->packed : facts->saved;
  if (first == kNever) first = slot;
}

void LifeCollector::ApplyCollective(const record::Collective& collective, std::uint64_t slot) {
  const auto [sent, received] = RolesOf(collective.operation);
  Involve(collective.commit.device, collective.send, sent, slot);
  Involve(collective.commit.device, collective.receive, received, slot);
}

void LifeCollector::Involve(std::int8_t device, std::uint64_t address, Role role, std::uint64_t slot) {
  if (address == 0) return;
  Facts* const facts = FactsAt(device, address);
  Mentions(device, facts, kNever, slot);
  if (facts == nullptr && device >= 0) Miss(&Unplaced::buffers, slot);
  if (facts == nullptr || !Outweighs(role, facts->role)) return;
  facts->role = role;
  facts->call = slot;
}

}  // namespace ledger::attribution
