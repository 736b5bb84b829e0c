// The balance sheet of one device at one instant: accounts that never overlap and add up to what is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ledger/format/ledger_file.h"
#include "ledger/replay/replayer.h"
#include "ledger/replay/segment_use.h"

namespace ledger::replay {

// Which metrics stand for `allocated` and `reserved`, by the backend that the framework's allocator uses.
enum class Backend : std::uint8_t {
  kBlocks,         // the caching allocator: it tells of every block
  kStreamOrdered,  // backend:cudaMallocAsync: the driver's pools cache
  kUncached,       // PYTORCH_NO_CUDA_MEMORY_CACHING=1: every tensor is a driver allocation
  kNone,           // no allocation of the framework was seen
};

Backend BackendOf(const DeviceReplay& device);
Metric AllocatedMetric(Backend backend);
Metric ReservedMetric(Backend backend, const DeviceReplay& device);
Metric UsedMetric(const DeviceReplay& device);
// How the numbers were derived where that is not the normal way; "" otherwise.
std::string BackendNote(Backend backend);

// One line: a holder outside of the caching allocator.
struct Account {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;  // allocations
};

struct Balance {
  std::uint64_t used = 0;  // of the device
  std::string used_note;   // how `used` is known, where the driver did not say it at this very instant
  std::uint64_t reserved = 0;
  std::uint64_t allocated = 0;
  FreeBytes free;                      // reserved and not allocated, of the default pool
  std::vector<PoolUse> private_pools;  // what is allocated in them is in `allocated`, the rest accounts of their own
  std::vector<Account> nccl;           // per communicator
  std::vector<Account> libraries;      // by library
  std::vector<Account> program;        // direct allocations of the program itself
  std::uint64_t pool_slack = 0;        // held by stream-ordered pools beyond what is alive in them
  std::uint64_t context = 0;           // context and modules: what was used before this process had allocated anything
  std::uint64_t unexplained = 0;
  std::uint64_t overdrawn = 0;  // known bytes beyond what the driver says is used; 0 unless something is wrong

  std::uint64_t Sum() const;
  // Free bytes of all private pools.
  std::uint64_t PrivateFree() const;
};

// "private pool 0.1".
std::string PoolName(const PoolId& pool);

Balance MakeBalance(const format::LedgerFile& file, const Snapshot& snapshot, Backend backend,
                    const DeviceUse& final_use);

// The allocated bytes of one place in the program.
struct Site {
  std::string scope;  // path; "" outside of any range
  std::string owner;  // library; "" for the framework
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;
};
// The live set by site, largest first; of equal ones, by name.
std::vector<Site> SitesOf(const format::LedgerFile& file, const Snapshot& snapshot, Backend backend);

struct RequestedBytes {
  std::uint64_t known_blocks = 0;  // live blocks of which the requested bytes are known ...
  std::uint64_t blocks = 0;        // ... of so many
  std::uint64_t requested = 0;     // of the known ones
  std::uint64_t rounded = 0;       // their block bytes
};
RequestedBytes RequestedOf(const format::LedgerFile& file, const Snapshot& snapshot);

}  // namespace ledger::replay
