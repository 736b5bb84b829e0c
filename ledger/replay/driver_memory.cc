#include "ledger/replay/driver_memory.h"

#include <algorithm>
#include <utility>

namespace ledger::replay {

using record::Kind;
using record::Memory;

bool OnDevice(Memory memory) {
  switch (memory) {
    case Memory::kLinear:
    case Memory::kPitched:
    case Memory::kAsync:
    case Memory::kArray:
    case Memory::kPhysical:
    case Memory::kUnknown:
      return true;
    case Memory::kManaged:
    case Memory::kHost:
    case Memory::kHostRegistered:
    case Memory::kPhysicalHost:
    case Memory::kPeer:
    case Memory::kAddressSpace:
      return false;
  }
  return false;
}

namespace {

LiveAllocation FromObject(const PhysicalMemory::Object& object) {
  return {object.bytes, object.slot, object.device, object.memory, object.owner};
}

}  // namespace

absl::Span<const std::int8_t> DriverMemory::Apply(const format::Slot& slot, std::uint64_t index, Anomalies& anomalies) {
  touched_.clear();
  switch (slot.kind()) {
    case Kind::kAlloc:
      Alloc(slot.As<record::Allocation>(), index, anomalies);
      break;
    case Kind::kFree: {
      const auto& free = slot.As<record::Allocation>();
      free.result == 0 ? Free(free, anomalies) : UndoFree(free);
      break;
    }
    case Kind::kHandleCreate:
    case Kind::kHandleImport:
      CreateHandle(slot.As<record::Allocation>(), index, anomalies);
      break;
    case Kind::kHandleRetain:
      if (!physical_.Retain(slot.As<record::Allocation>().address)) ++anomalies.unknown_frees;
      break;
    case Kind::kHandleRelease: {
      const auto& release = slot.As<record::Allocation>();
      if (release.result != 0) {
        UndoRelease(release, anomalies);
      } else if (!physical_.Release(release.address, died_)) {
        ++anomalies.unknown_frees;
      }
      break;
    }
    case Kind::kMap: {
      const auto& mapping = slot.As<record::Mapping>();
      if (!physical_.Map(mapping.address, mapping.size, mapping.handle, died_)) ++anomalies.double_allocs;
      break;
    }
    case Kind::kUnmap: {
      const auto& mapping = slot.As<record::Mapping>();
      if (!physical_.Unmap(mapping.address, mapping.size, died_)) ++anomalies.unknown_frees;
      break;
    }
    case Kind::kReserve:
      Reserve(slot.As<record::Allocation>());
      break;
    case Kind::kUnreserve:
      Unreserve(slot.As<record::Allocation>(), anomalies);
      break;
    case Kind::kPoolSample:
      SamplePool(slot.As<record::PoolSample>());
      break;
    case Kind::kDeviceReset:
      Reset(slot.commit().device);
      break;
    default:
      break;
  }
  Bury();
  return touched_;
}

bool DriverMemory::Plausible(const LiveAllocation& allocation, Anomalies& anomalies) const {
  const bool placed = !OnDevice(allocation.memory) || allocation.device >= 0;
  if (allocation.bytes <= kMaxAllocationBytes && placed) return true;
  ++anomalies.implausible;
  return false;
}

// What is subtracted was added to the same totals before: that is why none can fall below zero.
void DriverMemory::Change(const LiveAllocation& allocation, bool add) {
  const auto change = [&](std::uint64_t& total) { total += add ? allocation.bytes : 0 - allocation.bytes; };
  switch (allocation.memory) {
    case Memory::kHost:
    case Memory::kPhysicalHost:
      change(host_.pinned);
      return;
    case Memory::kHostRegistered:
      change(host_.registered);
      return;
    case Memory::kManaged:
      change(host_.managed);
      return;
    default:
      break;
  }
  if (!OnDevice(allocation.memory)) return;
  touched_.push_back(allocation.device);
  DeviceBytes& device = devices_[static_cast<std::size_t>(allocation.device)];
  const bool framework = allocation.owner == Owner::kCachingAllocator;
  if (allocation.memory == Memory::kAsync) {
    change(device.stream_ordered);
    if (framework) change(device.allocator_stream_ordered);
    return;
  }
  change(device.held);
  if (framework) change(device.segments);
}

void DriverMemory::Alloc(const record::Allocation& allocation, std::uint64_t index, Anomalies& anomalies) {
  const LiveAllocation live{allocation.size, index, allocation.commit.device, allocation.memory,
                            owners_.Find(allocation.owner, allocation.commit.layer)};
  if (!Plausible(live, anomalies)) return;
  auto& table = allocation.memory == Memory::kHostRegistered ? registered_ : allocations_;
  const auto [entry, added] = table.try_emplace(allocation.address, live);
  if (!added) {
    ++anomalies.double_allocs;
    Subtract(entry->second);
    entry->second = live;
  }
  Add(live);
}

void DriverMemory::Free(const record::Allocation& allocation, Anomalies& anomalies) {
  auto& table = allocation.memory == Memory::kHostRegistered ? registered_ : allocations_;
  const auto entry = table.find(allocation.address);
  if (entry == table.end()) {
    ++anomalies.unknown_frees;
    return;
  }
  Subtract(entry->second);
  recent_frees_[next_free_++ % kRecentFrees] = {allocation.address, entry->second};
  table.erase(entry);
}

void DriverMemory::UndoFree(const record::Allocation& allocation) {
  auto& table = allocation.memory == Memory::kHostRegistered ? registered_ : allocations_;
  for (std::size_t back = 1; back <= std::min(next_free_, kRecentFrees); ++back) {
    RecentFree& recent = recent_frees_[(next_free_ - back) % kRecentFrees];
    if (recent.address != allocation.address || recent.address == 0) continue;
    if (table.try_emplace(recent.address, recent.allocation).second) Add(recent.allocation);
    recent.address = 0;  // once
    return;
  }
  // Otherwise what was never there could not be freed, as it should be; the free itself has been counted.
}

void DriverMemory::UndoRelease(const record::Allocation& allocation, Anomalies& anomalies) {
  if (physical_.Retain(allocation.address)) return;
  for (std::size_t back = 1; back <= std::min(next_death_, kRecentFrees); ++back) {
    PhysicalMemory::Object& recent = recent_deaths_[(next_death_ - back) % kRecentFrees];
    if (recent.handle != allocation.address || recent.handle == 0) continue;
    if (!physical_.Create(recent, died_)) ++anomalies.double_allocs;
    Add(FromObject(recent));
    recent.handle = 0;  // once
    return;
  }
}

void DriverMemory::Bury() {
  for (const auto& object : died_) {
    Subtract(FromObject(object));
    recent_deaths_[next_death_++ % kRecentFrees] = object;
  }
  died_.clear();
}

void DriverMemory::CreateHandle(const record::Allocation& allocation, std::uint64_t index, Anomalies& anomalies) {
  PhysicalMemory::Object object;
  object.bytes = allocation.size;
  object.slot = index;
  object.handle = allocation.address;
  object.device = allocation.commit.device;
  // What is imported is charged to the process that made it.
  object.memory = static_cast<Kind>(allocation.commit.kind) == Kind::kHandleImport ? Memory::kPeer : allocation.memory;
  object.owner = owners_.Find(allocation.owner, allocation.commit.layer);
  const LiveAllocation live = FromObject(object);
  if (!Plausible(live, anomalies)) return;
  if (!physical_.Create(object, died_)) ++anomalies.double_allocs;
  Add(live);
}

void DriverMemory::Reserve(const record::Allocation& allocation) {
  if (allocation.size > kMaxAllocationBytes) return;
  std::uint64_t& size = reservations_[allocation.address];
  address_space_ += allocation.size - size;
  size = allocation.size;
}

void DriverMemory::Unreserve(const record::Allocation& allocation, Anomalies& anomalies) {
  const auto entry = reservations_.find(allocation.address);
  if (entry == reservations_.end()) {
    ++anomalies.unknown_frees;
    return;
  }
  address_space_ -= entry->second;
  reservations_.erase(entry);
}

void DriverMemory::SamplePool(const record::PoolSample& sample) {
  const std::int8_t device = sample.commit.device;
  if (device < 0 || sample.reserved_bytes > kMaxAllocationBytes) return;
  const auto [pool, added] = pools_.try_emplace(sample.pool, Pool{0, device});
  if (pool->second.device != device) return;
  devices_[static_cast<std::size_t>(device)].pools_reserved += sample.reserved_bytes - pool->second.reserved;
  pool->second.reserved = sample.reserved_bytes;
  touched_.push_back(device);
}

void DriverMemory::Reset(std::int8_t device) {
  if (device < 0) return;
  for (auto entry = allocations_.begin(); entry != allocations_.end();) {
    const auto current = entry++;
    if (!OnDevice(current->second.memory) || current->second.device != device) continue;
    Subtract(current->second);
    allocations_.erase(current);
  }
  physical_.Reset(device, died_);
  for (auto& [id, pool] : pools_) {
    if (pool.device == device) pool.reserved = 0;
  }
  devices_[static_cast<std::size_t>(device)].pools_reserved = 0;
  touched_.push_back(device);
}

}  // namespace ledger::replay
