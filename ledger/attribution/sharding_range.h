// The ranges of the framework's profiler around the work that sharding (FSDP2) does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace ledger::attribution {

// What of it allocates for collectives only.
enum class Sharding : std::uint8_t { kNone, kGather, kReduce };

struct ShardingRange {
  Sharding work = Sharding::kNone;
  // The module that was sharded, "" for the root; empty where the range tells of none, and so may be one inside of a
  // module's.
  std::optional<std::string> module;
};

// "FSDP::all_gather (layers.3)" gathers the module "layers.3". Empty for a range of something else.
std::optional<ShardingRange> ReadShardingRange(absl::string_view range);

}  // namespace ledger::attribution
