#include "ledger/replay/balance.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ledger/replay/communicator_name.h"
#include "ledger/replay/record_fields.h"

namespace ledger::replay {
namespace {

using format::LedgerFile;
using record::Memory;

using Accounts = std::map<std::string, Account>;

void Charge(Accounts& accounts, std::string name, std::uint64_t bytes) {
  Account& account = accounts[name];
  account.name = std::move(name);
  account.bytes += bytes;
  ++account.count;
}

std::vector<Account> Sorted(const Accounts& accounts) {
  std::vector<Account> sorted;
  sorted.reserve(accounts.size());
  for (const auto& [name, account] : accounts) sorted.push_back(account);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Account& a, const Account& b) { return a.bytes > b.bytes; });
  return sorted;
}

std::uint64_t Total(const std::vector<Account>& accounts) {
  std::uint64_t sum = 0;
  for (const Account& account : accounts) sum += account.bytes;
  return sum;
}

std::uint64_t BeyondOr0(std::uint64_t larger, std::uint64_t smaller) { return larger > smaller ? larger - smaller : 0; }

void ChargeOthers(const LedgerFile& file, const Snapshot& snapshot, Balance& balance) {
  Accounts nccl, libraries, program;
  for (const LiveAllocation& live : snapshot.allocations) {
    const format::Slot& slot = file.slots()[live.slot];
    const std::string owner = file.Text(OwnerOf(slot));
    switch (live.owner) {
      case Owner::kCachingAllocator:
        break;  // reserved, and the framework's pools
      case Owner::kNccl:
        Charge(nccl, CommunicatorName(file, slot.As<record::Allocation>().context, live.slot), live.bytes);
        break;
      case Owner::kLibrary:
        Charge(libraries, owner, live.bytes);
        break;
      case Owner::kProgram:
        Charge(program, owner.empty() ? "owner not known" : owner, live.bytes);
        break;
    }
  }
  balance.nccl = Sorted(nccl);
  balance.libraries = Sorted(libraries);
  balance.program = Sorted(program);
}

// What the driver says is used at the snapshot's instant. It was asked last at some earlier event; what was got or
// given back since then is known.
void FindUsed(const Snapshot& snapshot, const DeviceUse& final_use, Balance& balance) {
  const std::uint64_t known = snapshot.bytes.Known();
  if (!final_use.sampled) {
    balance.used = known;
    balance.used_note = "the driver was never asked for its used bytes: this is the sum of what is known";
  } else if (!snapshot.use.sampled) {
    balance.used = known + final_use.baseline;
    balance.used_note = "before the driver was first asked for its used bytes: known bytes and the context's";
  } else if (snapshot.use.known_then == known) {
    balance.used = snapshot.use.used;
  } else {
    balance.used = snapshot.use.Now(known);
    balance.used_note = "the driver's last answer, and what was got or given back since";
  }
  const std::uint64_t baseline = snapshot.use.sampled ? snapshot.use.baseline : final_use.baseline;
  balance.context = std::min(baseline, BeyondOr0(balance.used, known));
  balance.unexplained = BeyondOr0(balance.used, known + balance.context);
  balance.overdrawn = BeyondOr0(known, balance.used);
}

}  // namespace

Backend BackendOf(const DeviceReplay& device) {
  if (device.block_events() != 0) return Backend::kBlocks;
  if (device.peaks().RunPeak(Metric::kStreamOrdered).bytes != 0) return Backend::kStreamOrdered;
  if (device.peaks().RunPeak(Metric::kReserved).bytes != 0) return Backend::kUncached;
  return Backend::kNone;
}

Metric AllocatedMetric(Backend backend) {
  switch (backend) {
    case Backend::kStreamOrdered:
      return Metric::kStreamOrdered;
    case Backend::kUncached:
      return Metric::kReserved;
    case Backend::kBlocks:
    case Backend::kNone:
      break;
  }
  return Metric::kAllocated;
}

Metric ReservedMetric(Backend backend, const DeviceReplay& device) {
  if (backend != Backend::kStreamOrdered) return Metric::kReserved;
  const bool sampled = device.peaks().RunPeak(Metric::kPoolReserved).bytes != 0;
  return sampled ? Metric::kPoolReserved : Metric::kStreamOrdered;
}

Metric UsedMetric(const DeviceReplay& device) { return device.use().sampled ? Metric::kDeviceUsed : Metric::kKnown; }

std::string BackendNote(Backend backend) {
  switch (backend) {
    case Backend::kStreamOrdered:
      return "no block events, but stream-ordered allocations of the framework (backend:cudaMallocAsync): allocated is "
             "the sum of those, as requested; reserved is what their pools say they hold";
    case Backend::kUncached:
      return "no block events, but driver allocations of the framework (PYTORCH_NO_CUDA_MEMORY_CACHING=1): allocated "
             "and "
             "reserved are the sum of those";
    case Backend::kNone:
      return "no allocation of the framework was seen";
    case Backend::kBlocks:
      break;
  }
  return "";
}

std::uint64_t Balance::Sum() const {
  return allocated + free.Sum() + PrivateFree() + Total(nccl) + Total(libraries) + Total(program) + pool_slack +
         context + unexplained - overdrawn;
}

std::uint64_t Balance::PrivateFree() const {
  std::uint64_t sum = 0;
  for (const PoolUse& pool : private_pools) sum += pool.free.Sum();
  return sum;
}

std::string PoolName(const PoolId& pool) { return absl::StrCat("private pool ", pool.first, ".", pool.second); }

Balance MakeBalance(const LedgerFile& file, const Snapshot& snapshot, Backend backend, const DeviceUse& final_use) {
  Balance balance;
  const DeviceBytes& bytes = snapshot.bytes;
  const std::uint64_t pools_free = bytes.Pools() - bytes.stream_ordered;
  switch (backend) {
    case Backend::kBlocks:
      balance.reserved = bytes.segments;
      balance.allocated = snapshot.values[static_cast<std::size_t>(Metric::kAllocated)];
      // The framework's own stream-ordered memory is none of its segments.
      balance.pool_slack = pools_free + bytes.allocator_stream_ordered;
      break;
    case Backend::kStreamOrdered:
      balance.reserved = bytes.segments + bytes.allocator_stream_ordered + pools_free;
      balance.allocated = bytes.allocator_stream_ordered;
      break;
    case Backend::kUncached:
    case Backend::kNone:
      balance.reserved = balance.allocated = bytes.segments;
      balance.pool_slack = pools_free;
      break;
  }
  if (backend == Backend::kBlocks) {
    SegmentUse use = UseOf(snapshot);
    balance.free = use.shared.free;
    balance.private_pools = std::move(use.private_pools);
    // A block that lies in no known segment has none of its free bytes; what remains of reserved is free all the same.
    const std::uint64_t known = balance.allocated + balance.free.Sum() + balance.PrivateFree();
    if (known < balance.reserved) balance.free.inactive += balance.reserved - known;
  } else {
    balance.free.cached = BeyondOr0(balance.reserved, balance.allocated);
  }
  ChargeOthers(file, snapshot, balance);
  FindUsed(snapshot, final_use, balance);
  return balance;
}

std::vector<Site> SitesOf(const LedgerFile& file, const Snapshot& snapshot, Backend backend) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Site> by_id;
  const auto charge = [&](std::uint64_t index, std::uint64_t bytes) {
    const format::Slot& slot = file.slots()[index];
    Site& site = by_id[{ScopeOf(slot), OwnerOf(slot)}];
    site.bytes += bytes;
    ++site.count;
  };
  if (backend == Backend::kBlocks) {
    for (const LiveBlock& block : snapshot.blocks) charge(block.slot, block.bytes);
  } else {
    for (const LiveAllocation& live : snapshot.allocations) {
      if (live.owner == Owner::kCachingAllocator) charge(live.slot, live.bytes);
    }
  }
  // Different scopes may have one path.
  std::map<std::pair<std::string, std::string>, Site> by_name;
  for (const auto& [id, site] : by_id) {
    std::string scope = file.ScopePath(id.first);
    std::string owner = file.Text(id.second);
    Site& merged = by_name[{scope, owner}];
    merged.scope = std::move(scope);
    merged.owner = std::move(owner);
    merged.bytes += site.bytes;
    merged.count += site.count;
  }
  std::vector<Site> sites;
  for (auto& [name, site] : by_name) sites.push_back(std::move(site));
  std::stable_sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) { return a.bytes > b.bytes; });
  return sites;
}

RequestedBytes RequestedOf(const LedgerFile& file, const Snapshot& snapshot) {
  RequestedBytes result;
  result.blocks = snapshot.blocks.size();
  for (const LiveBlock& block : snapshot.blocks) {
    const std::uint64_t requested = file.slots()[block.slot].As<record::Block>().requested;
    if (requested == 0 || requested > block.bytes) continue;
    ++result.known_blocks;
    result.requested += requested;
    result.rounded += block.bytes;
  }
  return result;
}

}  // namespace ledger::replay
