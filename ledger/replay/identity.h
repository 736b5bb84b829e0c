// The identities that a ledger must fulfil: the product's truth, checked rather than promised.
#pragma once

#include <string>
#include <vector>

namespace ledger::replay {

struct Identity {
  std::string name;
  bool holds = false;
  std::string detail;  // what was compared, and where it fails
};

// The names, as JSON has them.
inline constexpr char kAllocatedIdentity[] = "replayed_allocated";  // = the allocator's total, at every event
inline constexpr char kReservedIdentity[] = "replayed_reserved";    // likewise
inline constexpr char kLiveSetIdentity[] = "live_set_sum";          // Σ live set at the allocated peak = that peak
inline constexpr char kAccountsIdentity[] = "accounts_sum";         // Σ accounts = device used, at each peak
inline constexpr char kWindowIdentity[] = "window_peaks";           // = torch's max_memory_*, per window
inline constexpr char kSnapshotIdentity[] = "snapshot_live_set";    // = the blocks of torch's snapshot

bool AllHold(const std::vector<Identity>& identities);

}  // namespace ledger::replay
