// What a process holds below the caching allocator: driver allocations of every kind, live, by device and on the host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ledger/format/slot.h"
#include "ledger/replay/owner.h"
#include "ledger/replay/physical_memory.h"

namespace ledger::replay {

// Records that say something impossible, or speak of memory that was never seen. None of them moves a total below zero.
struct Anomalies {
  std::uint64_t unknown_frees = 0;  // of driver memory, handles and mappings
  std::uint64_t double_allocs = 0;  // at an address where memory was alive; the free was missed
  std::uint64_t unknown_block_frees = 0;
  std::uint64_t double_blocks = 0;
  std::uint64_t block_size_changes = 0;  // freed with another size than allocated with; the latter counts
  std::uint64_t implausible = 0;         // a size or device that cannot be; left out

  std::uint64_t Total() const {
    return unknown_frees + double_allocs + unknown_block_frees + double_blocks + block_size_changes + implausible;
  }
};

// No allocation is larger: 256 TiB is the address space of the processor.
inline constexpr std::uint64_t kMaxAllocationBytes = std::uint64_t{1} << 48;
inline constexpr std::size_t kMaxDevices = 128;

// Live bytes of one device.
struct DeviceBytes {
  std::uint64_t segments = 0;                  // of the caching allocator
  std::uint64_t held = 0;                      // everything but stream-ordered memory; includes segments
  std::uint64_t stream_ordered = 0;            // live in pools
  std::uint64_t allocator_stream_ordered = 0;  // of these, the framework's
  std::uint64_t pools_reserved = 0;            // what pools said last that they hold

  // Pools hold at least what is alive in them.
  std::uint64_t Pools() const { return pools_reserved > stream_ordered ? pools_reserved : stream_ordered; }
  std::uint64_t Known() const { return held + Pools(); }
};

struct HostBytes {
  std::uint64_t pinned = 0;      // cudaHostAlloc and the like, and cuMemCreate on the host
  std::uint64_t registered = 0;  // cudaHostRegister
  std::uint64_t managed = 0;     // reserved; where it resides is not known
};

struct LiveAllocation {
  std::uint64_t bytes = 0;
  std::uint64_t slot = 0;
  std::int8_t device = record::kNoDevice;
  record::Memory memory = record::Memory::kUnknown;
  Owner owner = Owner::kProgram;
};

class DriverMemory {
 public:
  explicit DriverMemory(const OwnerTable& owners) : owners_(owners) {}

  // Applies a record of a memory kind (kAlloc … kUnmap, kPoolSample, kDeviceReset); others are left alone. Returns the
  // devices whose totals may have changed; valid until the next call.
  absl::Span<const std::int8_t> Apply(const format::Slot& slot, std::uint64_t index, Anomalies& anomalies);

  const DeviceBytes& device(std::int8_t device) const { return devices_[static_cast<std::size_t>(device)]; }
  const HostBytes& host() const { return host_; }
  const PhysicalMemory& physical() const { return physical_; }

  // Live allocations that are not VMM objects: by address, and registered host memory by itself, since its addresses
  // are the caller's own.
  const absl::flat_hash_map<std::uint64_t, LiveAllocation>& allocations() const { return allocations_; }
  const absl::flat_hash_map<std::uint64_t, LiveAllocation>& registered() const { return registered_; }
  std::uint64_t address_space() const { return address_space_; }

 private:
  void Alloc(const record::Allocation& allocation, std::uint64_t index, Anomalies& anomalies);
  void Free(const record::Allocation& allocation, Anomalies& anomalies);
  void UndoFree(const record::Allocation& allocation);
  void UndoRelease(const record::Allocation& allocation, Anomalies& anomalies);
  void CreateHandle(const record::Allocation& allocation, std::uint64_t index, Anomalies& anomalies);
  void SamplePool(const record::PoolSample& sample);
  void Reset(std::int8_t device);
  void Reserve(const record::Allocation& allocation);
  void Unreserve(const record::Allocation& allocation, Anomalies& anomalies);

  bool Plausible(const LiveAllocation& allocation, Anomalies& anomalies) const;
  void Add(const LiveAllocation& allocation) { Change(allocation, true); }
  void Subtract(const LiveAllocation& allocation) { Change(allocation, false); }
  void Change(const LiveAllocation& allocation, bool add);
  void Bury();

  const OwnerTable& owners_;
  std::array<DeviceBytes, kMaxDevices> devices_{};
  HostBytes host_;
  absl::flat_hash_map<std::uint64_t, LiveAllocation> allocations_, registered_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> reservations_;
  std::uint64_t address_space_ = 0;
  PhysicalMemory physical_;
  std::vector<PhysicalMemory::Object> died_;  // scratch
  // A free is recorded before it happens; one that failed is recorded again, with the error. Until then it could be any
  // of the last frees, of as many threads.
  static constexpr std::size_t kRecentFrees = 256;
  struct RecentFree {
    std::uint64_t address = 0;
    LiveAllocation allocation;
  };
  std::array<RecentFree, kRecentFrees> recent_frees_{};
  std::size_t next_free_ = 0;
  std::array<PhysicalMemory::Object, kRecentFrees> recent_deaths_{};
  std::size_t next_death_ = 0;
  std::vector<std::int8_t> touched_;
  struct Pool {
    std::uint64_t reserved = 0;
    std::int8_t device = record::kNoDevice;
  };
  absl::flat_hash_map<std::uint64_t, Pool> pools_;
};

// Is this kind of memory on the device, as opposed to the host or another process?
bool OnDevice(record::Memory memory);

}  // namespace ledger::replay
