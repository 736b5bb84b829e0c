#include "ledger/attribution/sharding_range.h"

#include "absl/strings/match.h"

namespace ledger::attribution {

std::optional<ShardingRange> ReadShardingRange(absl::string_view range) {
  if (!absl::StartsWith(range, "FSDP::")) return std::nullopt;
  ShardingRange result;
  if (absl::StartsWith(range, "FSDP::all_gather")) result.work = Sharding::kGather;
  // Where parameters are sharded over fewer ranks between forward and backward: these larger shards.
  if (absl::StartsWith(range, "FSDP::post_forward")) result.work = Sharding::kGather;
  if (absl::StartsWith(range, "FSDP::post_backward_reduce")) result.work = Sharding::kReduce;
  const std::size_t open = range.find(" (");
  if (open != absl::string_view::npos && range.back() == ')') {
    result.module = std::string(range.substr(open + 2, range.size() - open - 3));
  } else if (result.work == Sharding::kGather) {
    result.module = "";  // ranges of the root name no module
  }
  return result;
}

}  // namespace ledger::attribution
