#include "ledger/attribution/classify.h"

#include <catch2/catch.hpp>
#include <utility>

#include "ledger/attribution/judged.h"

namespace ledger::attribution {
namespace {

using record::Layer;
using record::NameCategory;
using record::PhaseKind;

TEST_CASE("a name counts for the whole life, however late it comes, and outweighs the graph and calls") {
  TestJob job(/*agent=*/true);
  const auto weight = job.Allocate(1024);
  const auto gathered = job.Allocate(2048);
  job.Enter(PhaseKind::kForward, 0);
  job.Save(weight, record::kSavedLeaf);
  job.Save(gathered);
  job.Name(gathered, NameCategory::kGatheredParameter, "layers.0.weight");
  job.Enter(PhaseKind::kBackward, 0);
  const auto gradient = job.Allocate(1024, 0, true);
  job.Collect(record::Operation::kReduceScatter, 0, gradient);
  job.Enter(PhaseKind::kOptimizer, 0);
  job.Name(weight, NameCategory::kParameter, "layers.0.weight");
  job.Name(gradient, NameCategory::kGradient, "", weight);
  job.Free(gradient, 1024);
  const Judged judged(job);
  judged.Check(weight, Category::kParameter, Evidence::kNamed);
  judged.Check(gathered, Category::kCommBuffer, Evidence::kNamed, Role::kGatheredParameter);
  judged.Check(gradient, Category::kGradient, Evidence::kNamed);
  CHECK(judged.Name(gradient) == "layers.0.weight");
}

TEST_CASE("what backward keeps for the backward of another step is no gradient") {
  for (const bool named : {true, false}) {
    TestJob job(true);
    std::uint64_t left = 0, rank_one = 0;  // of the gradients that were compressed, and what was sent instead of them
    std::uint64_t gradient = 0, kept = 0;  // by name, and without
    for (std::uint64_t step = 0; step < 3; ++step) {
      job.Enter(PhaseKind::kForward, step);
      job.Enter(PhaseKind::kBackward, step);
      gradient = job.Allocate(4096, 0, true);
      if (step == 0) {
        rank_one = job.Allocate(512, 0, true);
        kept = job.Allocate(4096, 0, true);
      }
      job.Collect(record::Operation::kAllReduce, rank_one, rank_one);
      const auto before = left;
      left = job.Allocate(4096, 0, true);
      if (before != 0) job.Free(before, 4096, 0, true);
      job.Enter(PhaseKind::kOptimizer, step);
      if (named) job.Name(gradient, NameCategory::kGradient, "weight");
      job.Free(gradient, 4096);
      if (step == 1) {
        const Judged judged(job);
        judged.Check(left, Category::kGradient, Evidence::kLifetime);  // as far as is known
        judged.Check(before, Category::kBuffer, Evidence::kScope, Role::kStateOfProgram);
      }
    }
    const Judged judged(job);
    judged.Check(gradient, Category::kGradient, named ? Evidence::kNamed : Evidence::kLifetime);
    // Where gradients have no names, one may be kept and added to.
    judged.Check(kept, named ? Category::kBuffer : Category::kGradient, named ? Evidence::kScope : Evidence::kLifetime,
                 named ? Role::kStateOfProgram : Role::kNone);
    judged.Check(rank_one, named ? Category::kCommBuffer : Category::kGradient, Evidence::kCall,
                 Role::kAllReduceBuffer);
  }
}

TEST_CASE("a copy of the weights was taken for a model until it was known what is trained") {
  TestJob job(true);
  const auto teacher = job.Allocate(2048), weight = job.Allocate(2048);
  job.Name(teacher, NameCategory::kParameter, "0.weight");
  job.Name(weight, NameCategory::kBuffer, "0.weight");
  job.Name(weight, NameCategory::kParameter, "0.weight");
  const std::uint32_t key = job.ledger.Text("copy of parameters");
  job.Name(teacher, NameCategory::kBuffer, "0.weight");
  job.ledger.At<record::Name>(job.ledger.slots() - 1).key = key;
  job.Name(teacher, NameCategory::kParameter, "0.weight");
  const Judged judged(job);
  judged.Check(teacher, Category::kBuffer, Evidence::kNamed);
  judged.Check(weight, Category::kParameter, Evidence::kNamed);
}

TEST_CASE("what a model made is an activation, though another model is called with it") {
  TestJob job(true);
  const auto module = job.Scope(0, "generator", record::kScopeModule, Layer::kAgent);
  job.Enter(PhaseKind::kForward, 0);
  const auto batch = job.Allocate(1024), made = job.Allocate(1024, module);
  job.Save(made);
  job.Name(batch, NameCategory::kInput, "input[0]");
  job.Name(made, NameCategory::kInput, "input[0]");
  job.Enter(PhaseKind::kBackward, 0);
  const Judged judged(job);
  judged.Check(batch, Category::kInput, Evidence::kNamed);
  judged.Check(made, Category::kSavedActivation, Evidence::kGraph);
}

TEST_CASE("what has a gradient and lives on is a parameter, whether the graph saves it itself or as a view") {
  TestJob job(false);
  const auto weight = job.Allocate(2048), bias = job.Allocate(512), batch = job.Allocate(1024);
  for (std::uint64_t step = 0; step < 3; ++step) {
    job.Enter(PhaseKind::kForward, step);
    job.Save(weight);
    job.Save(batch);
    job.Enter(PhaseKind::kBackward, step);
    const auto of_weight = job.Allocate(2048, 0, true), of_bias = job.Allocate(512, 0, true);
    job.Name(of_weight, NameCategory::kGradient, "", weight);
    job.Name(of_bias, NameCategory::kGradient, "", bias);
    job.Enter(PhaseKind::kOptimizer, step);
    job.Free(of_weight, 2048);
    job.Free(of_bias, 512);
  }
  const Judged judged(job);
  judged.Check(weight, Category::kParameter, Evidence::kGraph);
  judged.Check(bias, Category::kParameter, Evidence::kGraph);
  judged.Check(batch, Category::kInput, Evidence::kGraph);
}

TEST_CASE("a gradient of a gathered parameter is unsharded") {
  TestJob job(true);
  const auto gathered = job.Allocate(2048), gradient = job.Allocate(2048);
  job.Name(gathered, NameCategory::kGatheredParameter, "w");
  job.Name(gradient, NameCategory::kGradient, "", gathered);
  Judged(job).Check(gradient, Category::kGradient, Evidence::kNamed, Role::kUnsharded);
}

TEST_CASE("a gradient that is accumulated for an activation is none of a parameter") {
  TestJob job(true);
  const auto weight = job.Allocate(2048);
  job.Enter(PhaseKind::kForward, 0);
  const auto input_of_region = job.Allocate(2048);
  job.Enter(PhaseKind::kBackward, 0);
  const auto of_region = job.Allocate(2048, 0, true), of_weight = job.Allocate(2048, 0, true);
  job.Name(of_region, NameCategory::kGradient, "", input_of_region);
  job.Name(of_weight, NameCategory::kGradient, "", weight);
  const Judged judged(job);
  judged.Check(of_region, Category::kActivationGradient, Evidence::kNamed);
  judged.Check(of_weight, Category::kGradient, Evidence::kNamed);
}

TEST_CASE("what the graph saves of a backward that is differentiated again is an activation, not recomputed") {
  TestJob job(true);
  const auto node = job.Scope(0, "MmBackward0", record::kScopeBackward, Layer::kOp);
  const auto weight = job.Allocate(8192);
  job.Enter(PhaseKind::kForward, 0);
  const auto batch = job.Allocate(512), activation = job.Allocate(1024);
  job.Save(activation);
  job.Name(batch, NameCategory::kInput, "input[0]");
  job.Enter(PhaseKind::kBackward, 0);  // create_graph
  const auto saved = job.Allocate(2048, node, true), slope = job.Allocate(4096, node, true);
  job.Save(saved);
  job.Enter(PhaseKind::kForward, 0);
  job.Enter(PhaseKind::kBackward, 0);
  const auto again = job.Allocate(1024, node, true), kept = job.Allocate(512, node, true);
  const auto gradient = job.Allocate(8192, node, true), of_batch = job.Allocate(512, node, true);
  job.Save(again);
  for (const auto& [address, owner] : {std::pair(gradient, weight), std::pair(of_batch, batch)}) {
    job.Name(address, NameCategory::kGradient, "", owner);
    job.ledger.At<record::Name>(job.ledger.slots() - 1).flags = record::kNameFromGraph;
  }
  for (const auto address : {activation, saved, again}) job.Free(address, 0, 0, true);
  job.Enter(PhaseKind::kOptimizer, 0);
  const Judged judged(job);
  judged.Check(activation, Category::kSavedActivation, Evidence::kGraph);
  judged.Check(saved, Category::kSavedActivation, Evidence::kGraph);
  judged.Check(slope, Category::kActivationGradient, Evidence::kScope);
  judged.Check(again, Category::kRecomputedActivation, Evidence::kGraph);
  judged.Check(kept, Category::kGradient, Evidence::kLifetime);  // that backward stored gradients
  judged.Check(gradient, Category::kGradient, Evidence::kNamed);
  judged.Check(of_batch, Category::kActivationGradient, Evidence::kNamed);
}

TEST_CASE("what a block was requested with is known where it was looked up later") {
  TestJob job(true);
  const auto seen = job.Allocate(2048), other = job.Allocate(2048);
  record::BlockDetail detail = {};
  detail.address = seen;
  detail.requested = 1100;
  job.ledger.Add(record::Kind::kBlockSeen, 0, detail, record::Layer::kOp);
  const Judged judged(job);
  const DeviceLives& lives = *judged.attribution().lives(0);
  CHECK(lives.FactsOf(judged.At(seen)).requested == 1100);
  CHECK(lives.FactsOf(judged.At(other)).requested == 0);
}

TEST_CASE("a gathered parameter stays one when it is found in the place of its shard") {
  TestJob job(true);
  const auto gathered = job.Allocate(2048), flat = job.Allocate(2048);
  job.Name(gathered, NameCategory::kGatheredParameter, "w");
  job.Name(gathered, NameCategory::kParameter, "w");
  job.Name(flat, NameCategory::kParameter, "flat");
  job.Name(flat, NameCategory::kGatheredParameter, "flat");
  const Judged judged(job);
  judged.Check(gathered, Category::kCommBuffer, Evidence::kNamed, Role::kGatheredParameter);
  judged.Check(flat, Category::kParameter, Evidence::kNamed);
}

TEST_CASE("what a name says inside of a block counts for the block") {
  TestJob job(true);
  const auto bucket = job.Allocate(1 << 20);
  job.Name(bucket + 4096, NameCategory::kGradient, "w");
  const Judged judged(job);
  judged.Check(bucket, Category::kGradient, Evidence::kNamed);
  CHECK(judged.attribution().unplaced().Sum() == 0);
}

TEST_CASE("what is said of an address at which nothing lives is counted and charged to nobody") {
  TestJob job(true);
  const auto block = job.Allocate(512);
  const std::uint64_t nothing = block + 512;
  const std::uint64_t first = job.ledger.slots() + 1;  // behind the text of the name
  job.Name(nothing, NameCategory::kGradient, "w");
  job.Save(nothing);
  job.Save(nothing);
  job.Collect(record::Operation::kAllReduce, nothing, block);
  for (const record::Kind kind : {record::Kind::kTag, record::Kind::kUntag}) {
    record::Tag tag = {};
    tag.address = nothing;
    job.ledger.Add(kind, record::kNoDevice, tag);
  }
  record::BlockDetail seen = {};
  seen.address = nothing;
  job.ledger.Add(record::Kind::kBlockSeen, 0, seen);
  const Judged judged(job);
  const Unplaced& unplaced = judged.attribution().unplaced();
  CHECK(unplaced.names == 1);
  CHECK(unplaced.saved_tensors == 2);
  CHECK(unplaced.buffers == 1);
  CHECK(unplaced.tags == 1);  // what ends takes nothing with it
  CHECK(unplaced.sizes == 1);
  CHECK(unplaced.first == first);
  CHECK(judged.At(block).category != Category::kGradient);
}

TEST_CASE("a tag finds its block on whichever device it is") {
  TestJob job(true);
  job.Allocate(512);
  job.ledger.BlockAlloc(1, 0x1000, 512);
  record::Tag tag = {};
  tag.address = 0x1000;
  tag.text = job.ledger.Text("cache");
  job.ledger.Add(record::Kind::kTag, record::kNoDevice, tag);
  CHECK(Judged(job).attribution().unplaced().Sum() == 0);
}

TEST_CASE("the graph tells activations from what a checkpoint keeps and drops") {
  TestJob job(true);
  job.Enter(PhaseKind::kForward, 0);
  const auto saved = job.Allocate(1024), boundary = job.Allocate(2048), dropped = job.Allocate(4096);
  job.Save(saved);
  job.Save(boundary, record::kSavedPacked);
  job.Save(dropped, record::kSavedPacked);
  job.Free(dropped, 4096);
  job.Enter(PhaseKind::kBackward, 0);
  const auto again = job.Allocate(4096, 0, true);
  job.Save(again, record::kSavedPacked);
  for (const auto address : {saved, boundary, again}) job.Free(address, 0, 0, true);
  job.Enter(PhaseKind::kBetween, 0);
  const Judged judged(job);
  judged.Check(saved, Category::kSavedActivation, Evidence::kGraph);
  judged.Check(boundary, Category::kSavedActivation, Evidence::kGraph, Role::kCheckpointBoundary);
  judged.Check(dropped, Category::kTemporary, Evidence::kScope);
  judged.Check(again, Category::kRecomputedActivation, Evidence::kGraph);
}

TEST_CASE("data that the graph saves is input, and what FSDP gathers is no activation") {
  TestJob job(true);
  const auto range = job.Scope(0, "FSDP::all_gather_copy_out (0)", record::kScopeUser, Layer::kOp);
  const auto batch = job.Allocate(512);
  job.Enter(PhaseKind::kForward, 0);
  const auto whole = job.Allocate(8192, range);
  job.Save(batch);
  job.Save(whole);
  job.Enter(PhaseKind::kBackward, 0);
  job.Enter(PhaseKind::kBetween, 0);
  job.Free(batch, 512);
  const Judged judged(job);
  judged.Check(batch, Category::kInput, Evidence::kGraph);
  judged.Check(whole, Category::kCommBuffer, Evidence::kScope, Role::kGatheredParameter);
}

TEST_CASE("what a job sends from where it lay before the first step is a parameter, not a buffer of the call") {
  TestJob job(true);
  const auto shard = job.Allocate(1024), weight = job.Allocate(1024), bucket = job.Allocate(1024);
  job.Enter(PhaseKind::kForward, 0);
  const auto gathered = job.Allocate(2048);
  job.Collect(record::Operation::kAllGather, shard, gathered);
  job.Collect(record::Operation::kBroadcast, weight, weight);
  job.Collect(record::Operation::kAllReduce, bucket, bucket);
  job.Enter(PhaseKind::kBackward, 0);
  const Judged judged(job);
  judged.Check(shard, Category::kParameter, Evidence::kLifetime, Role::kAllGatherInput);
  judged.Check(weight, Category::kParameter, Evidence::kLifetime, Role::kBroadcastBuffer);
  judged.Check(bucket, Category::kCommBuffer, Evidence::kCall, Role::kAllReduceBuffer);
  judged.Check(gathered, Category::kCommBuffer, Evidence::kCall, Role::kAllGatherOutput);
}

TEST_CASE("what backward made and ranks reduced in place is a gradient when it stays, and else a buffer") {
  TestJob job(true);
  job.Enter(PhaseKind::kForward, 0);
  job.Enter(PhaseKind::kBackward, 0);
  const auto gradient = job.Allocate(4096, 0, true), bucket = job.Allocate(4096, 0, true);
  job.Collect(record::Operation::kAllReduce, gradient, gradient);
  job.Collect(record::Operation::kAllReduce, bucket, bucket);
  job.Free(bucket, 4096, 0, true);
  job.Enter(PhaseKind::kBetween, 0);
  const Judged judged(job);
  judged.Check(gradient, Category::kGradient, Evidence::kCall, Role::kAllReduceBuffer);
  judged.Check(bucket, Category::kCommBuffer, Evidence::kCall, Role::kAllReduceBuffer);
}

TEST_CASE("a buffer of a collective has the role that says most") {
  TestJob job(true);
  job.Enter(PhaseKind::kForward, 0);
  const auto output = job.Allocate(8192), input = job.Allocate(1024), scattered = job.Allocate(8192);
  job.Collect(record::Operation::kAllGather, output + 1024, output);  // in place: it sends a part of its output
  job.Collect(record::Operation::kReduceScatter, scattered, input);
  job.Collect(record::Operation::kAllGather, input, output);
  for (const auto address : {output, input, scattered}) job.Free(address, 0);
  const Judged judged(job);
  judged.Check(output, Category::kCommBuffer, Evidence::kCall, Role::kAllGatherOutput);
  judged.Check(scattered, Category::kCommBuffer, Evidence::kCall, Role::kReduceScatterInput);
  CHECK(judged.At(input).category == Category::kCommBuffer);
}

TEST_CASE("a backward node's block is a temporary when the node frees it, else a gradient of an activation") {
  TestJob job(true);
  const auto node = job.Scope(0, "MmBackward0", record::kScopeBackward, Layer::kOp);
  const auto op = job.Scope(node, "aten::mm", 0, Layer::kOp);
  const auto next = job.Scope(0, "AddBackward0", record::kScopeBackward, Layer::kOp);
  job.Enter(PhaseKind::kForward, 0);
  job.Enter(PhaseKind::kBackward, 0);
  const auto passed_on = job.Allocate(1024, op, true), scratch = job.Allocate(1024, op, true);
  job.Free(scratch, 1024, node, true);
  job.Free(passed_on, 1024, next, true);
  job.Enter(PhaseKind::kBetween, 0);
  const Judged judged(job);
  judged.Check(passed_on, Category::kActivationGradient, Evidence::kScope);
  judged.Check(scratch, Category::kTemporary, Evidence::kScope);
}

TEST_CASE("the optimizer's own blocks are temporaries, or state when they stay") {
  TestJob job(true);
  for (std::uint64_t step = 0; step < 3; ++step) {
    job.Enter(PhaseKind::kForward, step);
    job.Enter(PhaseKind::kBackward, step);
    job.Enter(PhaseKind::kOptimizer, step);
    if (step != 0) continue;
    job.Allocate(4096);
    job.Free(job.Allocate(1024), 1024);
  }
  const Judged judged(job);
  judged.Check(TestJob::kSegment + (1 << 24), Category::kOptimizerState, Evidence::kLifetime);
  judged.Check(TestJob::kSegment + (2 << 24), Category::kTemporary, Evidence::kScope);
}

TEST_CASE("a program's tag says what a block is") {
  TestJob job(true);
  const auto shadow = job.Allocate(1024), mine = job.Allocate(1024);
  record::Tag tag = {};
  tag.address = shadow;
  tag.text = job.ledger.Text("shadow weights");
  job.ledger.Add(record::Kind::kTag, record::kNoDevice, tag, Layer::kApi);
  tag.address = mine;
  tag.text = job.ledger.Text("optimizer_state: mine");
  job.ledger.Add(record::Kind::kTag, record::kNoDevice, tag, Layer::kApi);
  const Judged judged(job);
  judged.Check(shadow, Category::kBuffer, Evidence::kNamed);
  CHECK(judged.Name(shadow) == "shadow weights");
  judged.Check(mine, Category::kOptimizerState, Evidence::kNamed);
}

// Three steps of a job of which nothing but blocks and threads is known.

}  // namespace
}  // namespace ledger::attribution
