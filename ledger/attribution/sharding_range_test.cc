#include "ledger/attribution/sharding_range.h"

#include <catch2/catch.hpp>

namespace ledger::attribution {
namespace {

TEST_CASE("a range of FSDP2 tells its work and the module that was sharded") {
  const auto gather = ReadShardingRange("FSDP::all_gather (layers.3)");
  REQUIRE(gather);
  CHECK(gather->work == Sharding::kGather);
  CHECK(gather->module == "layers.3");
  const auto copy_out = ReadShardingRange("FSDP::all_gather_copy_out (layers.3)");
  REQUIRE(copy_out);
  CHECK(copy_out->work == Sharding::kGather);
  const auto larger_shards = ReadShardingRange("FSDP::post_forward (layers.3)");
  REQUIRE(larger_shards);
  CHECK(larger_shards->work == Sharding::kGather);
  const auto reduce = ReadShardingRange("FSDP::post_backward_reduce (layers.3)");
  REQUIRE(reduce);
  CHECK(reduce->work == Sharding::kReduce);
  CHECK(reduce->module == "layers.3");
}

TEST_CASE("the root's gathers name no module, and other ranges without one may be inside of a module's") {
  const auto root = ReadShardingRange("FSDP::all_gather");
  REQUIRE(root);
  CHECK(root->module == "");
  const auto inner = ReadShardingRange("FSDP::post_backward_reshard");
  REQUIRE(inner);
  CHECK(inner->work == Sharding::kNone);
  CHECK_FALSE(inner->module);
}

TEST_CASE("a range of something else tells nothing of sharding") {
  CHECK_FALSE(ReadShardingRange("Optimizer.step#AdamW.step"));
  CHECK_FALSE(ReadShardingRange("my FSDP::all_gather"));
  CHECK_FALSE(ReadShardingRange(""));
}

}  // namespace
}  // namespace ledger::attribution
