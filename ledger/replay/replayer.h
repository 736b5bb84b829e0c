// Replays a ledger, event by event, and knows at each what was alive.
//
// Memory is O(live allocations + marks), however long the ledger is. To see the live set at a past instant, replay
// again up to there with a fresh Replayer and take a Snapshot: that is how the set at a high-water mark is had, exactly
// and without a copy of anything on the way (see analysis.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ledger/format/ledger_file.h"
#include "ledger/replay/allocator_detail.h"
#include "ledger/replay/driver_memory.h"
#include "ledger/replay/owner.h"
#include "ledger/replay/peaks.h"

namespace ledger::replay {

struct LiveBlock {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t slot = 0;
};

// Does a total of ours equal the allocator's own, that came with the event?
struct TotalCheck {
  std::uint64_t events = 0;
  std::uint64_t mismatches = 0;
  std::uint64_t first_slot = 0;
  std::uint64_t first_replayed = 0;
  std::uint64_t first_reported = 0;
  std::uint64_t largest_difference = 0;

  void Compare(std::uint64_t replayed, std::uint64_t reported, std::uint64_t slot) {
    ++events;
    if (replayed != reported) [[unlikely]] {
      Mismatch(replayed, reported, slot);
    }
  }
  void Mismatch(std::uint64_t replayed, std::uint64_t reported, std::uint64_t slot);
};

// What the driver said is used on a device, against what is known of it.
struct DeviceUse {
  bool sampled = false;
  std::uint64_t used = 0;        // said last
  std::uint64_t known_then = 0;  // at that instant
  // Context and modules, and other processes: used beyond what was known the first time, and what loading code added.
  std::uint64_t baseline = 0;
  std::uint64_t baseline_slot = 0;
  std::uint64_t unexplained = 0;  // beyond the baseline, now
  std::uint64_t largest_unexplained = 0;

  // The driver's last answer, and what was got or given back since.
  std::uint64_t Now(std::uint64_t known) const { return used + known > known_then ? used + known - known_then : 0; }
};

// An instant at which the unexplained bytes of a device reached a new height.
struct UnexplainedStep {
  std::uint64_t slot = 0;
  std::uint64_t grew_by = 0;
  std::uint64_t bytes = 0;  // after it
};

class DeviceReplay {
 public:
  const PeakTracker& peaks() const { return peaks_; }
  const TotalCheck& allocated_check() const { return allocated_check_; }
  const TotalCheck& reserved_check() const { return reserved_check_; }
  const DeviceUse& use() const { return use_; }
  const std::vector<UnexplainedStep>& unexplained_steps() const { return steps_; }
  std::uint64_t block_events() const { return allocated_check_.events; }
  const absl::flat_hash_map<std::uint64_t, LiveBlock>& blocks() const { return blocks_; }

 private:
  friend class Replayer;

  void AllocateBlock(const record::Block& block, std::uint64_t slot, Anomalies& anomalies);
  void FreeBlock(const record::Block& block, std::uint64_t slot, Anomalies& anomalies);
  void CheckTotals(const record::Block& block, std::uint64_t slot);
  void DriverChanged(const DeviceBytes& bytes, std::uint64_t slot);
  // `loads`: the driver was asked after it had loaded code, which is what the new bytes are for.
  void SampleUsed(std::uint64_t used, std::uint64_t known, std::uint64_t slot, bool loads);
  // At an event at which the driver was not asked: it must not be while a graph is captured.
  void InferUsed(std::uint64_t known, std::uint64_t slot);
  void Reset(std::uint64_t slot);

  absl::flat_hash_map<std::uint64_t, LiveBlock> blocks_;
  std::uint64_t allocated_ = 0;
  std::uint64_t segments_ = 0;
  PeakTracker peaks_;
  TotalCheck allocated_check_, reserved_check_;
  DeviceUse use_;
  std::vector<UnexplainedStep> steps_;
  AllocatorDetail detail_;
};

// Everything alive on one device (and the host) right after one event.
struct Snapshot {
  std::uint64_t slot = 0;
  std::int8_t device = 0;
  Values values{};
  DeviceBytes bytes;
  HostBytes host;
  DeviceUse use;
  std::vector<LiveBlock> blocks;            // by address
  std::vector<LiveAllocation> allocations;  // driver memory on this device, by slot; without peers' and address space
  // Ranges of the caching allocator: its linear allocations, and runs of mappings of its physical memory. By address.
  struct Segment {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Segment> segments;
  std::vector<PendingFree> pending;    // by address
  std::vector<PoolRange> pool_ranges;  // of private pools, by address
};

class Replayer {
 public:
  explicit Replayer(const format::LedgerFile& file);

  // Applies the events up to `end` (exclusive), from where the last call stopped.
  void RunTo(std::uint64_t end);
  // Applies what is left and ends the last interval.
  void Finish();

  std::uint64_t position() const { return position_; }
  // Null for a device that no event was about.
  const DeviceReplay* device(std::int8_t device) const { return devices_[static_cast<std::size_t>(device)].get(); }
  std::vector<std::int8_t> Devices() const;
  const DriverMemory& driver() const { return driver_; }
  const Anomalies& anomalies() const { return anomalies_; }
  const HostBytes& host_peaks() const { return host_peaks_; }

  // Slots of rare events, the first kMaxRareEvents of each.
  const std::vector<std::uint64_t>& ooms() const { return ooms_; }
  const std::vector<std::uint64_t>& failures() const { return failures_; }
  std::uint64_t oom_count() const { return oom_count_; }
  std::uint64_t failure_count() const { return failure_count_; }
  std::uint64_t pauses() const { return pauses_; }

  Snapshot TakeSnapshot(std::int8_t device) const;

 private:
  static constexpr std::size_t kMaxRareEvents = 64;
  // A ledger with a mark per event would cost as much as the ledger; later marks join the last interval.
  static constexpr std::size_t kMaxIntervals = 1 << 18;

  DeviceReplay* Device(std::int8_t device);
  void Apply(const format::Slot& slot, std::uint64_t index);
  void ApplyRare(const format::Slot& slot, std::uint64_t index);
  void ApplyDetail(const format::Slot& slot);
  bool LoadsCode(const record::DeviceSample& sample) const;
  void ApplyDriver(const format::Slot& slot, std::uint64_t index);
  void Mark(std::uint64_t index);
  void UpdateHostPeaks();
  std::vector<Snapshot::Segment> Segments(std::int8_t device) const;

  const format::LedgerFile& file_;
  OwnerTable owners_;
  DriverMemory driver_;
  std::array<std::unique_ptr<DeviceReplay>, kMaxDevices> devices_;
  Anomalies anomalies_;
  HostBytes host_peaks_;
  std::vector<std::uint64_t> ooms_, failures_;
  std::uint64_t oom_count_ = 0, failure_count_ = 0, pauses_ = 0;
  std::uint64_t position_ = 0;
  std::size_t intervals_ = 0;
};

}  // namespace ledger::replay
