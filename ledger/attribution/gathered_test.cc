#include "ledger/attribution/gathered.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "ledger/attribution/attribution.h"
#include "ledger/attribution/test_job.h"

namespace ledger::attribution {
namespace {

using record::Layer;
using record::NameCategory;
using record::Operation;
using record::PhaseKind;

constexpr std::uint64_t kMB = 1'000'000;

GatheredState GatheredOf(const TestJob& job) {
  const auto file = *job.ledger.Read();
  const replay::Analysis analysis(file, {});
  const Attribution attribution(file, analysis.devices());
  return GatheredOf(attribution.grounds(), *attribution.lives(0));
}

// Two sharded layers, as FSDP2's ranges and the agent tell of them.
struct Sharded {
  Sharded() : job(/*agent=*/true) {
    for (int i = 0; i < 2; ++i) {
      module[i] = job.Scope(0, absl::StrCat("layers.", i), record::kScopeModule, Layer::kAgent);
      op[i] = job.Scope(module[i], "aten::mm", 0, Layer::kOp);
    }
  }

  // By the module itself, or by `ahead`, another one before it.
  std::uint64_t Gather(int layer, std::uint64_t bytes, std::optional<int> ahead = std::nullopt) {
    const std::string range = absl::StrCat("FSDP::all_gather (layers.", layer, ")");
    const auto scope = job.Scope(module[ahead.value_or(layer)], range, record::kScopeUser, Layer::kOp);
    const auto output = job.Allocate(bytes, scope);
    job.Collect(Operation::kAllGather, output, output, bytes / 8);
    return output;
  }

  TestJob job;
  std::uint32_t module[2], op[2];
};

TEST_CASE("a gathered layer, the next one ahead of its use, and a workspace make 900 MB that no parameter count has") {
  Sharded sharded;
  TestJob& job = sharded.job;
  job.Enter(PhaseKind::kForward, 0);
  const auto first = sharded.Gather(0, 400 * kMB);
  const auto second = sharded.Gather(1, 400 * kMB, 0);
  const auto workspace = job.Allocate(100 * kMB, sharded.op[0]);
  job.Name(workspace, NameCategory::kWorkspace, "cuBLAS workspace");
  job.Free(workspace, 100 * kMB);
  job.Free(first, 400 * kMB);
  const auto activation = job.Allocate(512, sharded.op[1]);
  job.Free(second, 400 * kMB);
  job.Free(activation, 512);

  const GatheredState state = GatheredOf(job);
  CHECK(state.largest.Gathered() == 800 * kMB);
  CHECK(state.largest.InUse() == 400 * kMB);
  CHECK(state.largest.ahead == 400 * kMB);
  CHECK(state.transient.Total() == 900 * kMB);
  CHECK(state.transient.workspace == 100 * kMB);
  REQUIRE(state.groups.size() == 2);
  CHECK(state.groups[0].name == "layers.0");
  CHECK_FALSE(state.groups[0].ahead);
  CHECK(state.groups[1].name == "layers.1");
  CHECK(state.groups[1].ahead);
  CHECK(state.held.empty());
}

TEST_CASE("what was gathered ahead is in use once its module runs, and ahead again when it is gathered again") {
  Sharded sharded;
  TestJob& job = sharded.job;
  job.Enter(PhaseKind::kForward, 0);
  const auto first = sharded.Gather(1, 100, 0);
  const auto activation = job.Allocate(512, sharded.op[1]);
  sharded.Gather(0, 200);
  job.Free(first, 100);
  sharded.Gather(1, 150, 0);
  job.Free(activation, 512);

  const GatheredState state = GatheredOf(job);
  CHECK(state.largest.Gathered() == 350);
  CHECK(state.largest.InUse() == 200);
  CHECK(state.largest.ahead == 150);
  CHECK(state.most_ahead.ahead == 150);
}

TEST_CASE("where nobody sees modules run, all that is gathered counts as in use") {
  TestJob job(/*agent=*/true);
  job.Enter(PhaseKind::kForward, 0);
  job.Allocate(400, job.Scope(0, "FSDP::all_gather (layers.0)", record::kScopeUser, Layer::kOp));
  const auto whole = job.Allocate(200);
  job.Name(whole, NameCategory::kGatheredParameter, "layers.1.attention.weight");
  const GatheredState state = GatheredOf(job);
  CHECK(state.largest.InUse() == 600);
  CHECK(state.most_ahead.ahead == 0);
}

TEST_CASE("an output and the parameters that are copied from it are two things") {
  Sharded sharded;
  TestJob& job = sharded.job;
  job.Enter(PhaseKind::kForward, 0);
  const auto output = sharded.Gather(0, 400);
  const auto whole = job.Allocate(384, sharded.module[0]);
  job.Name(whole, NameCategory::kGatheredParameter, "layers.0.weight");
  job.Free(output, 400);
  job.Free(whole, 384);
  const GatheredState state = GatheredOf(job);
  CHECK(state.largest.whole == 384);
  CHECK(state.largest.outputs == 400);
}

TEST_CASE("the root is in use all the time") {
  TestJob job(/*agent=*/true);
  job.Enter(PhaseKind::kForward, 0);
  job.Allocate(400, job.Scope(0, "FSDP::all_gather", record::kScopeUser, Layer::kOp));
  const GatheredState state = GatheredOf(job);
  CHECK(state.largest.InUse() == 400);
  CHECK(state.most_ahead.ahead == 0);
  REQUIRE(state.groups.size() == 1);
  CHECK(state.groups[0].name.empty());
}

TEST_CASE("without ranges, a group goes by the module of what its all-gather sent") {
  Sharded sharded;
  TestJob& job = sharded.job;
  const auto shard = job.Allocate(1024);
  job.Name(shard, NameCategory::kParameter, "layers.1._flat_param");
  job.Enter(PhaseKind::kForward, 0);
  const auto whole = job.Allocate(8192, sharded.op[0]);
  job.Collect(Operation::kAllGather, shard, whole);
  job.Name(whole, NameCategory::kGatheredParameter, "norm.weight and 6 more");
  const GatheredState state = GatheredOf(job);
  REQUIRE(state.groups.size() == 1);
  CHECK(state.groups[0].name == "layers.1");
  CHECK(state.groups[0].ahead);
}

TEST_CASE("inputs of reduce-scatters have an account of their own") {
  Sharded sharded;
  TestJob& job = sharded.job;
  job.Enter(PhaseKind::kForward, 0);
  const auto whole = sharded.Gather(0, 800);
  job.Enter(PhaseKind::kBackward, 0);
  const auto gradients = job.Allocate(1600, 0, true);
  job.Collect(Operation::kReduceScatter, gradients, 0);
  job.Free(gradients, 1600);
  job.Free(whole, 800);
  const GatheredState state = GatheredOf(job);
  CHECK(state.largest_reduce_scatter == 1600);
  CHECK(state.transient.Total() == 2400);
  CHECK(state.transient.reduce_scatter == 1600);
}

TEST_CASE("parameters that stay gathered between passes have an age") {
  Sharded sharded;
  TestJob& job = sharded.job;
  job.Enter(PhaseKind::kEvaluation, 0);
  sharded.Gather(1, 250);
  job.Enter(PhaseKind::kBetween, 0);
  for (std::uint64_t step = 0; step < 3; ++step) {
    job.Enter(PhaseKind::kForward, step);
    const auto whole = sharded.Gather(0, 100);
    job.Enter(PhaseKind::kBackward, step);
    job.Free(whole, 100);
    job.Enter(PhaseKind::kBetween, step);
  }
  const GatheredState state = GatheredOf(job);
  REQUIRE(state.held.size() == 1);
  CHECK(state.held[0].name == "layers.1");
  CHECK(state.held[0].bytes == 250);
  CHECK(state.held[0].steps == 2);
  CHECK(state.held[0].forwards == 3);
  CHECK(state.held[0].until == kNever);
}

TEST_CASE("parameters that stay gathered in every step are held once, not once a step") {
  Sharded sharded;
  TestJob& job = sharded.job;
  for (std::uint64_t step = 0; step < 3; ++step) {
    job.Enter(PhaseKind::kForward, step);
    const auto whole = sharded.Gather(0, 100);
    job.Enter(PhaseKind::kBackward, step);
    job.Enter(PhaseKind::kBetween, step);
    job.Enter(PhaseKind::kForward, step);  // the second microbatch
    job.Enter(PhaseKind::kBackward, step);
    job.Free(whole, 100);
    job.Enter(PhaseKind::kBetween, step);
  }
  const GatheredState state = GatheredOf(job);
  REQUIRE(state.held.size() == 1);
  CHECK(state.held[0].bytes == 100);
  CHECK(state.held[0].blocks == 1);
  CHECK(state.held[0].forwards == 1);
  CHECK(state.held[0].until != kNever);
}

}  // namespace
}  // namespace ledger::attribution
