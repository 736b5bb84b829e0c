#include "ledger/replay/replayer.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "ledger/replay/record_fields.h"

namespace ledger::replay {

using record::Kind;

namespace {

// Growth of the unexplained below this is the driver's own rounding, and not worth a line.
constexpr std::uint64_t kUnexplainedStepBytes = 1 << 20;
constexpr std::size_t kMaxUnexplainedSteps = 8;

}  // namespace

void TotalCheck::Mismatch(std::uint64_t replayed, std::uint64_t reported, std::uint64_t slot) {
  if (mismatches++ == 0) {
    first_slot = slot;
    first_replayed = replayed;
    first_reported = reported;
  }
  largest_difference = std::max(largest_difference, replayed > reported ? replayed - reported : reported - replayed);
}

void DeviceReplay::AllocateBlock(const record::Block& block, std::uint64_t slot, Anomalies& anomalies) {
  if (block.size > kMaxAllocationBytes) {
    ++anomalies.implausible;
    return;
  }
  detail_.BlockBegins(block.address);
  const auto [entry, added] = blocks_.try_emplace(block.address, LiveBlock{block.address, block.size, slot});
  if (!added) [[unlikely]] {
    ++anomalies.double_blocks;
    allocated_ -= entry->second.bytes;
    entry->second = {block.address, block.size, slot};
  }
  allocated_ += block.size;
  peaks_.Set(Metric::kAllocated, allocated_, slot);
  CheckTotals(block, slot);
}

void DeviceReplay::FreeBlock(const record::Block& block, std::uint64_t slot, Anomalies& anomalies) {
  const auto entry = blocks_.find(block.address);
  if (entry == blocks_.end()) [[unlikely]] {
    ++anomalies.unknown_block_frees;
  } else {
    if (entry->second.bytes != block.size) ++anomalies.block_size_changes;
    allocated_ -= entry->second.bytes;
    blocks_.erase(entry);
    peaks_.Set(Metric::kAllocated, allocated_, slot);
  }
  CheckTotals(block, slot);
}

void DeviceReplay::CheckTotals(const record::Block& block, std::uint64_t slot) {
  allocated_check_.Compare(allocated_, block.allocated, slot);
  reserved_check_.Compare(segments_, block.reserved_total, slot);
}

void DeviceReplay::DriverChanged(const DeviceBytes& bytes, std::uint64_t slot) {
  segments_ = bytes.segments;
  peaks_.Set(Metric::kReserved, bytes.segments, slot);
  peaks_.Set(Metric::kStreamOrdered, bytes.allocator_stream_ordered, slot);
  peaks_.Set(Metric::kPoolReserved, bytes.pools_reserved, slot);
  peaks_.Set(Metric::kKnown, bytes.Known(), slot);
}

void DeviceReplay::SampleUsed(std::uint64_t used, std::uint64_t known, std::uint64_t slot, bool loads) {
  if (used > kMaxAllocationBytes) return;
  peaks_.Set(Metric::kDeviceUsed, used, slot);
  use_.used = used;
  use_.known_then = known;
  const std::uint64_t beyond = used > known ? used - known : 0;
  if (!use_.sampled) {
    use_.sampled = true;
    use_.baseline = beyond;
    use_.baseline_slot = slot;
  } else if (loads && beyond > use_.baseline + use_.unexplained) {
    use_.baseline = beyond - use_.unexplained;
  }
  use_.unexplained = beyond > use_.baseline ? beyond - use_.baseline : 0;
  if (use_.unexplained <= use_.largest_unexplained) return;
  const std::uint64_t grew_by = use_.unexplained - use_.largest_unexplained;
  use_.largest_unexplained = use_.unexplained;
  if (grew_by < kUnexplainedStepBytes) return;
  steps_.push_back({slot, grew_by, use_.unexplained});
  if (steps_.size() <= kMaxUnexplainedSteps) return;
  // Keep the largest; of equal ones, the earlier.
  const auto least = std::min_element(steps_.begin(), steps_.end(), [](const auto& a, const auto& b) {
    return a.grew_by != b.grew_by ? a.grew_by < b.grew_by : a.slot > b.slot;
  });
  steps_.erase(least);
}

void DeviceReplay::InferUsed(std::uint64_t known, std::uint64_t slot) {
  if (use_.sampled) peaks_.Set(Metric::kDeviceUsed, use_.Now(known), slot);
}

void DeviceReplay::Reset(std::uint64_t slot) {
  blocks_.clear();
  allocated_ = 0;
  detail_.Reset();
  peaks_.Set(Metric::kAllocated, 0, slot);
}

Replayer::Replayer(const format::LedgerFile& file) : file_(file), owners_(file.texts()), driver_(owners_) {}

DeviceReplay* Replayer::Device(std::int8_t device) {
  if (device < 0) {
    ++anomalies_.implausible;
    return nullptr;
  }
  auto& state = devices_[static_cast<std::size_t>(device)];
  if (state == nullptr) state = std::make_unique<DeviceReplay>();
  return state.get();
}

void Replayer::RunTo(std::uint64_t end) {
  const auto slots = file_.slots();
  end = std::min<std::uint64_t>(end, slots.size());
  for (; position_ < end; ++position_) {
    const format::Slot& slot = slots[position_];
    if (slot.committed()) [[likely]] {
      Apply(slot, position_);
    }
  }
}

void Replayer::Finish() {
  RunTo(file_.slots().size());
  for (auto& device : devices_) {
    if (device != nullptr) device->peaks_.Finish(position_);
  }
}

inline void Replayer::Apply(const format::Slot& slot, std::uint64_t index) {
  switch (slot.kind()) {
    case Kind::kBlockAlloc:
      if (DeviceReplay* device = Device(slot.commit().device)) {
        device->AllocateBlock(slot.As<record::Block>(), index, anomalies_);
      }
      return;
    case Kind::kBlockFree:
      if (DeviceReplay* device = Device(slot.commit().device)) {
        device->FreeBlock(slot.As<record::Block>(), index, anomalies_);
      }
      return;
    case Kind::kRangePush:
    case Kind::kRangePop:
    case Kind::kCollective:
      return;
    default:
      ApplyRare(slot, index);
  }
}

void Replayer::ApplyRare(const format::Slot& slot, std::uint64_t index) {
  switch (slot.kind()) {
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kHandleCreate:
    case Kind::kHandleImport:
    case Kind::kHandleRetain:
    case Kind::kHandleRelease:
    case Kind::kMap:
    case Kind::kUnmap:
    case Kind::kReserve:
    case Kind::kUnreserve:
    case Kind::kPoolSample:
    case Kind::kDeviceReset:
    case Kind::kDeviceSample:
      ApplyDriver(slot, index);
      return;
    case Kind::kBlockPending:
    case Kind::kBlockReusable:
    case Kind::kSegmentAlloc:
    case Kind::kSegmentFree:
    case Kind::kSegmentMap:
    case Kind::kSegmentUnmap:
    case Kind::kSegmentSeen:
      ApplyDetail(slot);
      return;
    case Kind::kAllocFailed:
      if (++failure_count_ <= kMaxRareEvents) failures_.push_back(index);
      return;
    case Kind::kBlockOom:
      if (++oom_count_ <= kMaxRareEvents) ooms_.push_back(index);
      return;
    case Kind::kMark:
      Mark(index);
      return;
    case Kind::kPause:
      ++pauses_;
      return;
    default:
      return;
  }
}

void Replayer::ApplyDetail(const format::Slot& slot) {
  const std::int8_t device = slot.commit().device;
  if (device >= 0) Device(device)->detail_.Apply(slot);
}

bool Replayer::LoadsCode(const record::DeviceSample& sample) const {
  const std::string why = file_.Text(sample.why);
  return absl::StartsWith(why, "cuModuleLoad") || absl::StartsWith(why, "cuLibraryLoad") ||
         absl::StartsWith(why, "cuLink");
}

void Replayer::ApplyDriver(const format::Slot& slot, std::uint64_t index) {
  const auto touched_devices = driver_.Apply(slot, index, anomalies_);
  for (const std::int8_t touched : touched_devices) Device(touched)->DriverChanged(driver_.device(touched), index);
  UpdateHostPeaks();
  const std::int8_t device = slot.commit().device;
  if (device >= 0 && slot.kind() == Kind::kDeviceReset) Device(device)->Reset(index);
  std::uint64_t used = 0;
  bool loads = false;
  if (slot.kind() == Kind::kDeviceSample) {
    const auto& sample = slot.As<record::DeviceSample>();
    if (sample.free_bytes > sample.total_bytes) {
      ++anomalies_.implausible;
      return;
    }
    used = sample.total_bytes - sample.free_bytes;
    loads = LoadsCode(sample);
  } else if (IsAllocation(slot.kind())) {
    used = slot.As<record::Allocation>().device_used;
  }
  if (used != 0 && device >= 0) {
    Device(device)->SampleUsed(used, driver_.device(device).Known(), index, loads);
    return;
  }
  for (const std::int8_t touched : touched_devices) Device(touched)->InferUsed(driver_.device(touched).Known(), index);
}

void Replayer::Mark(std::uint64_t index) {
  for (auto& device : devices_) {
    if (device == nullptr || intervals_ == kMaxIntervals) continue;
    device->peaks_.Mark(index);
    ++intervals_;
  }
}

void Replayer::UpdateHostPeaks() {
  const HostBytes& host = driver_.host();
  host_peaks_.pinned = std::max(host_peaks_.pinned, host.pinned);
  host_peaks_.registered = std::max(host_peaks_.registered, host.registered);
  host_peaks_.managed = std::max(host_peaks_.managed, host.managed);
}

std::vector<std::int8_t> Replayer::Devices() const {
  std::vector<std::int8_t> devices;
  for (std::size_t i = 0; i < kMaxDevices; ++i) {
    if (devices_[i] != nullptr) devices.push_back(static_cast<std::int8_t>(i));
  }
  return devices;
}

std::vector<Snapshot::Segment> Replayer::Segments(std::int8_t device) const {
  std::vector<Snapshot::Segment> segments;
  for (const auto& [address, allocation] : driver_.allocations()) {
    if (allocation.device == device && allocation.owner == Owner::kCachingAllocator && OnDevice(allocation.memory) &&
        allocation.memory != record::Memory::kAsync) {
      segments.push_back({address, allocation.bytes});
    }
  }
  const auto& objects = driver_.physical().objects();
  Snapshot::Segment run;
  for (const auto& mapping : driver_.physical().Mappings()) {
    const auto& object = objects.at(mapping.object);
    if (object.device != device || object.owner != Owner::kCachingAllocator) continue;
    if (run.bytes != 0 && run.address + run.bytes == mapping.begin) {
      run.bytes += mapping.end - mapping.begin;
      continue;
    }
    if (run.bytes != 0) segments.push_back(run);
    run = {mapping.begin, mapping.end - mapping.begin};
  }
  if (run.bytes != 0) segments.push_back(run);
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return segments;
}

Snapshot Replayer::TakeSnapshot(std::int8_t device) const {
  Snapshot snapshot;
  snapshot.slot = position_ == 0 ? 0 : position_ - 1;
  snapshot.device = device;
  snapshot.bytes = driver_.device(device);
  snapshot.host = driver_.host();
  const DeviceReplay* state = this->device(device);
  if (state != nullptr) {
    snapshot.values = state->peaks_.values();
    snapshot.use = state->use_;
    snapshot.blocks.reserve(state->blocks_.size());
    for (const auto& [address, block] : state->blocks_) snapshot.blocks.push_back(block);
    snapshot.pending = state->detail_.Pending();
    snapshot.pool_ranges = state->detail_.Ranges();
  }
  std::sort(snapshot.blocks.begin(), snapshot.blocks.end(),
            [](const LiveBlock& a, const LiveBlock& b) { return a.address < b.address; });
  for (const auto& [address, allocation] : driver_.allocations()) {
    if (allocation.device == device && OnDevice(allocation.memory)) snapshot.allocations.push_back(allocation);
  }
  for (const auto& [id, object] : driver_.physical().objects()) {
    if (object.device != device || !OnDevice(object.memory)) continue;
    snapshot.allocations.push_back({object.bytes, object.slot, object.device, object.memory, object.owner});
  }
  std::sort(snapshot.allocations.begin(), snapshot.allocations.end(),
            [](const LiveAllocation& a, const LiveAllocation& b) { return a.slot < b.slot; });
  snapshot.segments = Segments(device);
  return snapshot;
}

}  // namespace ledger::replay
