// What a report says about training beyond who held what at an instant, as plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ledger/attribution/communication.h"
#include "ledger/attribution/gathered.h"
#include "ledger/attribution/growth.h"
#include "ledger/attribution/model_state.h"

namespace ledger::report {

// A process group of the framework, as it was said of a communicator.
struct ProcessGroupReport {
  std::string name, description;
  std::uint32_t ranks = 0, rank = 0;
  std::int32_t first_rank = 0, rank_stride = 0;  // of the job; see record::ProcessGroupInfo
};

struct CommunicatorReport {
  std::string name;       // as it stands in accounts and rows
  std::string nccl_name;  // as NCCL was told; "" where it was not
  std::uint32_t ranks = 0, rank = 0;
  std::optional<ProcessGroupReport> group;
};

struct TransientReport {
  attribution::TransientUse use;
  std::int64_t time_ns = 0;
  std::string phase;
};

struct HeldReport {
  std::string name;  // of the module; "" for the root
  std::uint64_t bytes = 0, blocks = 0, steps = 0, forwards = 0;
  std::int64_t since_ns = 0, until_ns = -1;  // -1: to the end
};

struct GatheredReport {
  TransientReport largest, most_ahead, transient;
  std::uint64_t largest_reduce_scatter = 0;
  std::vector<attribution::GatheredGroup> groups;  // at `largest`
  std::vector<HeldReport> held;
};

struct ModelStateReport {
  std::vector<attribution::StateTensor> tensors;
  std::int64_t time_ns = 0;
  attribution::CategoryBytes held{};  // on this rank
  std::uint64_t unsharded_gradients = 0, master_gradients = 0;
  std::uint64_t persistent_at_peak = 0, transient_at_peak = 0;  // add up to what was allocated

  std::uint64_t Held() const;
};

// A kind of tensor of the model: a category, and of optimizer state a key.
struct StateWidth {
  attribution::Category category = attribution::Category::kUnknown;
  std::string key;
  std::uint64_t bytes = 0;
};

// The model, put together from all ranks that hold a part of it: what is named alike is one tensor.
struct ModelSummary {
  std::uint64_t parameters = 0;    // elements; 0: no rank knows
  std::vector<StateWidth> widths;  // by category, then largest first
  std::uint64_t bytes = 0;         // of the whole
  std::uint64_t held = 0;          // by all ranks together

  double PerParameter(std::uint64_t of) const {
    return parameters == 0 ? 0 : static_cast<double>(of) / static_cast<double>(parameters);
  }
  std::uint64_t Bytes(attribution::Category category) const;
};

// The blocks of one place and category that were alive when memory ran out.
struct HolderReport {
  attribution::Category category = attribution::Category::kUnknown;
  std::string scope, owner;  // as replay::Site has them
  std::uint64_t bytes = 0, count = 0;
  std::uint64_t held_at_end = 0;  // bytes of these that were alive when the ledger ended
  std::int64_t until_ns = -1;     // when the last of them was freed; -1: not all were
};

struct HostAccount {
  std::string name;  // "pinned by libtorch_cuda.so"
  std::uint64_t bytes = 0, allocations = 0;
  std::optional<std::uint64_t> requested;  // where what lies there has a name
};

// Pinned and registered host memory of a process at the instant at which it was the most.
struct HostSheetReport {
  std::uint64_t bytes = 0;
  std::int64_t time_ns = 0;
  std::vector<HostAccount> accounts;  // largest first; they add up to `bytes`
};

}  // namespace ledger::report
