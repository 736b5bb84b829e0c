// What the caching allocator's tracers tell beyond its blocks: frees that a stream still holds up, and the pools that
// segments belong to. Empty where the op adapter was not there.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "ledger/format/slot.h"

namespace ledger::replay {

// The framework's id of a memory pool; {0, 0} is the default one, any other is private: a CUDA graph's, a MemPool's.
struct PoolId {
  std::uint64_t first = 0, second = 0;

  bool IsDefault() const { return first == 0 && second == 0; }
  friend auto operator<=>(const PoolId&, const PoolId&) = default;
};

struct PoolRange {
  std::uint64_t address = 0, bytes = 0;
  PoolId pool;
};

struct PendingFree {
  std::uint64_t address = 0, bytes = 0;
};

// Of one device.
class AllocatorDetail {
 public:
  // Applies a record of a kind from kBlockPending to kSegmentSeen; others are left alone.
  void Apply(const format::Slot& slot);
  // A block begins at the address: what was pending there is over, whether its end was seen or not.
  void BlockBegins(std::uint64_t address);
  void Reset();

  std::uint64_t pending_bytes() const { return pending_bytes_; }
  std::vector<PendingFree> Pending() const;  // by address
  std::vector<PoolRange> Ranges() const;     // by address; those of private pools alone

 private:
  void EndPending(std::uint64_t address);
  void AddRange(const record::Segment& segment);
  void RemoveRange(const record::Segment& segment);

  absl::flat_hash_map<std::uint64_t, std::uint64_t> pending_;  // address → bytes
  std::uint64_t pending_bytes_ = 0;
  absl::btree_map<std::uint64_t, PoolRange> ranges_;  // of private pools
};

}  // namespace ledger::replay
