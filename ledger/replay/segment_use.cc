#include "ledger/replay/segment_use.h"

#include <algorithm>
#include <map>

namespace ledger::replay {
namespace {

using Segment = Snapshot::Segment;

// Segments where private pools begin and end: an expandable segment is one run of mappings for us.
std::vector<Segment> CutAtPools(const Snapshot& snapshot) {
  std::vector<std::uint64_t> cuts;
  for (const PoolRange& range : snapshot.pool_ranges) {
    cuts.push_back(range.address);
    cuts.push_back(range.address + range.bytes);
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<Segment> pieces;
  for (Segment segment : snapshot.segments) {
    const std::uint64_t end = segment.address + segment.bytes;
    for (auto cut = std::upper_bound(cuts.begin(), cuts.end(), segment.address); cut != cuts.end() && *cut < end;
         ++cut) {
      if (*cut == segment.address) continue;
      pieces.push_back({segment.address, *cut - segment.address});
      segment = {*cut, end - *cut};
    }
    pieces.push_back(segment);
  }
  return pieces;
}

PoolId PoolAt(const Snapshot& snapshot, std::uint64_t address) {
  const auto& ranges = snapshot.pool_ranges;
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), address,
                                      [](std::uint64_t at, const PoolRange& range) { return at < range.address; });
  if (after == ranges.begin()) return {};
  const PoolRange& range = *(after - 1);
  return address - range.address < range.bytes ? range.pool : PoolId{};
}

// The bytes of the blocks that begin in the segment; `next` is the first block that may.
template <typename Block>
std::uint64_t BytesIn(const Segment& segment, const std::vector<Block>& blocks, std::size_t& next) {
  while (next < blocks.size() && blocks[next].address < segment.address) ++next;
  std::uint64_t bytes = 0;
  for (; next < blocks.size() && blocks[next].address - segment.address < segment.bytes; ++next) {
    bytes += blocks[next].bytes;
  }
  return std::min(bytes, segment.bytes);
}

}  // namespace

SegmentUse UseOf(const Snapshot& snapshot) {
  std::map<PoolId, PoolUse> pools;
  std::size_t next_block = 0, next_pending = 0;
  for (const Segment& segment : CutAtPools(snapshot)) {
    PoolUse& pool = pools[PoolAt(snapshot, segment.address)];
    const std::uint64_t allocated = BytesIn(segment, snapshot.blocks, next_block);
    const std::uint64_t pending = std::min(BytesIn(segment, snapshot.pending, next_pending), segment.bytes - allocated);
    const std::uint64_t free = segment.bytes - allocated - pending;
    pool.reserved += segment.bytes;
    pool.allocated += allocated;
    pool.free.pending += pending;
    (allocated + pending == 0 ? pool.free.cached : pool.free.inactive) += free;
  }
  SegmentUse use;
  for (auto& [id, pool] : pools) {
    pool.pool = id;
    if (id.IsDefault()) {
      use.shared = pool;
    } else {
      use.private_pools.push_back(pool);
    }
  }
  return use;
}

}  // namespace ledger::replay
