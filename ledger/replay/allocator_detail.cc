#include "ledger/replay/allocator_detail.h"

#include <algorithm>
#include <iterator>

#include "ledger/replay/driver_memory.h"

namespace ledger::replay {

using record::Kind;

void AllocatorDetail::Apply(const format::Slot& slot) {
  switch (slot.kind()) {
    case Kind::kBlockPending: {
      const auto& block = slot.As<record::BlockDetail>();
      if (block.size > kMaxAllocationBytes) return;
      EndPending(block.address);
      pending_.emplace(block.address, block.size);
      pending_bytes_ += block.size;
      return;
    }
    case Kind::kBlockReusable:
      return EndPending(slot.As<record::BlockDetail>().address);
    case Kind::kSegmentAlloc:
    case Kind::kSegmentMap:
    case Kind::kSegmentSeen:
      return AddRange(slot.As<record::Segment>());
    case Kind::kSegmentFree:
    case Kind::kSegmentUnmap:
      return RemoveRange(slot.As<record::Segment>());
    default:
      return;
  }
}

void AllocatorDetail::BlockBegins(std::uint64_t address) {
  if (!pending_.empty()) EndPending(address);
}

void AllocatorDetail::Reset() {
  pending_.clear();
  pending_bytes_ = 0;
  ranges_.clear();
}

void AllocatorDetail::EndPending(std::uint64_t address) {
  const auto entry = pending_.find(address);
  if (entry == pending_.end()) return;
  pending_bytes_ -= entry->second;
  pending_.erase(entry);
}

void AllocatorDetail::AddRange(const record::Segment& segment) {
  if (segment.size == 0 || segment.size > kMaxAllocationBytes) return;
  RemoveRange(segment);
  const PoolId pool{segment.pool_id[0], segment.pool_id[1]};
  if (!pool.IsDefault()) ranges_[segment.address] = {segment.address, segment.size, pool};
}

// What lies in it; a part of a range that sticks out stays.
void AllocatorDetail::RemoveRange(const record::Segment& segment) {
  if (ranges_.empty() || segment.size == 0 || segment.size > kMaxAllocationBytes) return;
  const std::uint64_t begin = segment.address, end = segment.address + segment.size;
  auto entry = ranges_.lower_bound(begin);
  if (entry != ranges_.begin() && std::prev(entry)->second.address + std::prev(entry)->second.bytes > begin) --entry;
  std::vector<PoolRange> touched;
  for (; entry != ranges_.end() && entry->first < end; ++entry) touched.push_back(entry->second);
  for (const PoolRange& range : touched) {
    const std::uint64_t range_end = range.address + range.bytes;
    ranges_.erase(range.address);
    if (range.address < begin) ranges_[range.address] = {range.address, begin - range.address, range.pool};
    if (range_end > end) ranges_[end] = {end, range_end - end, range.pool};
  }
}

std::vector<PendingFree> AllocatorDetail::Pending() const {
  std::vector<PendingFree> pending;
  for (const auto& [address, bytes] : pending_) pending.push_back({address, bytes});
  std::sort(pending.begin(), pending.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return pending;
}

std::vector<PoolRange> AllocatorDetail::Ranges() const {
  std::vector<PoolRange> ranges;
  for (const auto& [address, range] : ranges_) ranges.push_back(range);
  return ranges;
}

}  // namespace ledger::replay
