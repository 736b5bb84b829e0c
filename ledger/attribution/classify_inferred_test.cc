// What is told by lifetimes, where neither the agent nor the op adapter says anything.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "ledger/attribution/classify.h"
#include "ledger/attribution/judged.h"

namespace ledger::attribution {
namespace {

TEST_CASE("lifetimes alone tell the categories of a plain job") {
  TestJob job(/*agent=*/false);
  const auto weight = job.Allocate(4096);
  std::uint64_t batch = 0, activation = 0, output = 0, gradient = 0, passed_on = 0, state = 0, scratch = 0;
  std::uint64_t earlier_batch = 0, earlier_output = 0;
  for (int step = 0; step < 3; ++step) {
    earlier_batch = batch;
    earlier_output = output;
    batch = job.Allocate(1024);
    if (step != 0) job.Free(earlier_batch, 1024);
    activation = job.Allocate(2048);
    scratch = job.Allocate(512);
    job.Free(scratch, 512);
    output = job.Allocate(512);
    if (step != 0) job.Free(earlier_output, 512);
    gradient = job.Allocate(4096, 0, true);
    passed_on = job.Allocate(2048, 0, true);
    job.Free(activation, 2048, 0, true);
    job.Free(passed_on, 2048, 0, true);
    if (step == 0) state = job.Allocate(8192);
    job.Free(gradient, 4096);
  }
  const Judged judged(job);
  CHECK(judged.attribution().phases().inferred());
  judged.Check(weight, Category::kParameter, Evidence::kLifetime);
  judged.Check(earlier_batch, Category::kInput, Evidence::kLifetime);
  judged.Check(activation, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(earlier_output, Category::kTemporary, Evidence::kLifetime, Role::kHeldByProgram);
  judged.Check(scratch, Category::kTemporary, Evidence::kLifetime);
  judged.Check(gradient, Category::kGradient, Evidence::kLifetime);
  judged.Check(passed_on, Category::kActivationGradient, Evidence::kLifetime);
  judged.Check(state, Category::kOptimizerState, Evidence::kLifetime);
}

TEST_CASE("what the graph saves before an inferred forward's first activation is its data") {
  TestJob job(/*agent=*/false);
  job.Allocate(4096);
  std::uint64_t batch = 0, activation = 0, earlier_batch = 0;
  for (int step = 0; step < 3; ++step) {
    earlier_batch = batch;
    batch = job.Allocate(1024);
    if (step != 0) job.Free(earlier_batch, 1024);
    activation = job.Allocate(2048);
    job.Save(batch);
    job.Save(activation);
    const auto gradient = job.Allocate(4096, 0, true);
    job.Free(activation, 2048, 0, true);
    job.Free(gradient, 4096);
  }
  const Judged judged(job);
  judged.Check(earlier_batch, Category::kInput, Evidence::kGraph);
  judged.Check(activation, Category::kSavedActivation, Evidence::kGraph);
}

// Three steps of a job that keeps its weights, frozen ones, and copies.
Judged JobWithCopies(const std::vector<std::uint64_t>& sizes, const std::vector<std::uint64_t>& copies) {
  TestJob job(/*agent=*/false);
  for (const std::uint64_t size : sizes) job.Allocate(size);
  job.Allocate(8192);
  for (const std::uint64_t size : copies) job.Allocate(size);
  for (int step = 0; step < 3; ++step) {
    const auto activation = job.Allocate(1024);
    std::vector<std::uint64_t> gradients;
    for (const std::uint64_t size : sizes) gradients.push_back(job.Allocate(size, 0, true));
    job.Free(activation, 1024, 0, true);
    for (const std::uint64_t gradient : gradients) job.Free(gradient, 0);
  }
  return Judged(job);
}

TEST_CASE("what is there twice of every size that gradients have is a copy of the weights") {
  const auto at = [](std::uint64_t number) { return TestJob::kSegment + (number << 24); };
  const Judged copied = JobWithCopies({4096, 2048, 2048}, {4096, 2048, 2048});
  for (const std::uint64_t weight : {1u, 2u, 3u, 4u})
    copied.Check(at(weight), Category::kParameter, Evidence::kLifetime);
  for (const std::uint64_t copy : {5u, 6u, 7u}) {
    copied.Check(at(copy), Category::kBuffer, Evidence::kLifetime, Role::kStateOfProgram);
  }
  const Judged other = JobWithCopies({4096, 2048, 2048}, {4096, 2048});  // less than a whole copy is none
  for (const std::uint64_t weight : {1u, 4u, 5u, 6u})
    other.Check(at(weight), Category::kParameter, Evidence::kLifetime);

  // Large blocks are of about the size that was asked for.
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
  const Judged large = JobWithCopies({4096, 3 * kMiB, 9 * kMiB}, {4096, 3 * kMiB + 4096, 9 * kMiB + kMiB / 2});
  for (const std::uint64_t copy : {5u, 6u, 7u}) {
    large.Check(at(copy), Category::kBuffer, Evidence::kLifetime, Role::kStateOfProgram);
  }
  const Judged frozen = JobWithCopies({4096, 3 * kMiB, 9 * kMiB}, {4096, 3 * kMiB, 3 * kMiB, 9 * kMiB});
  for (const std::uint64_t weight : {5u, 6u, 7u, 8u})
    frozen.Check(at(weight), Category::kParameter, Evidence::kLifetime);
}

// A generator's gradients are given back between the two backwards of a step, a critic's before the first of them.
TEST_CASE("lifetimes tell the categories where two models take turns") {
  TestJob job(/*agent=*/false);
  job.Allocate(4096);
  std::uint64_t made = 0, of_generator = 0, of_critic = 0, state_of_critic = 0, state_of_generator = 0;
  for (int step = 0; step < 4; ++step) {
    if (step != 0) job.Free(of_critic, 2048);
    made = job.Allocate(8192);
    const auto judged_first = job.Allocate(1024);
    of_critic = job.Allocate(2048, 0, true);
    job.Free(judged_first, 1024, 0, true);
    if (step == 0) state_of_critic = job.Allocate(4096);
    if (step != 0) job.Free(of_generator, 1024);
    const auto judged_again = job.Allocate(1024);
    of_generator = job.Allocate(1024, 0, true);
    job.Free(judged_again, 1024, 0, true);
    job.Free(made, 8192, 0, true);
    if (step == 0) state_of_generator = job.Allocate(2048);
  }
  const Judged judged(job);
  judged.Check(made, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(of_critic, Category::kGradient, Evidence::kLifetime);
  judged.Check(state_of_critic, Category::kOptimizerState, Evidence::kLifetime);
  judged.Check(state_of_generator, Category::kOptimizerState, Evidence::kLifetime);
}

// As loops do that call zero_grad() between forward and backward.
TEST_CASE("lifetimes tell the categories where gradients are dropped right before the next backward") {
  TestJob job(/*agent=*/false);
  const auto weight = job.Allocate(4096);
  std::uint64_t batch = 0, activation = 0, scratch = 0, gradient = 0, state = 0;
  for (int step = 0; step < 4; ++step) {
    if (batch != 0) job.Free(batch, 1024);
    batch = job.Allocate(1024);
    activation = job.Allocate(2048);
    scratch = job.Allocate(512);
    job.Free(scratch, 512);
    if (gradient != 0) job.Free(gradient, 4096);
    gradient = job.Allocate(4096, 0, true);
    job.Free(activation, 2048, 0, true);
    if (step == 0) state = job.Allocate(8192);
    job.Free(job.Allocate(4096), 4096);
  }
  const Judged judged(job);
  judged.Check(weight, Category::kParameter, Evidence::kLifetime);
  judged.Check(activation, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(gradient, Category::kGradient, Evidence::kLifetime);
  judged.Check(state, Category::kOptimizerState, Evidence::kLifetime);
  const auto& phases = judged.attribution().phases();
  const std::uint32_t born = judged.At(activation).begin_phase;
  CHECK(phases.intervals()[born].kind == record::PhaseKind::kForward);
  CHECK(phases.intervals()[born].step == 3);
}

// A gradient that is part of the loss; a graph that two backwards go through.
TEST_CASE("by lifetime, what one backward makes or leaves for another one is saved") {
  TestJob job(/*agent=*/false);
  job.Allocate(4096);
  std::uint64_t batch = 0, earlier_batch = 0, activation = 0, saved = 0, gradient = 0, last = 0;
  for (int step = 0; step < 4; ++step) {
    earlier_batch = batch;
    batch = job.Allocate(1024);
    if (step != 0) job.Free(earlier_batch, 1024);
    activation = job.Allocate(2048);
    saved = job.Allocate(8192, 0, true);
    job.Free(job.Allocate(512, 0, true), 512, 0, true);
    last = job.Allocate(512);
    gradient = job.Allocate(4096, 0, true);
    for (const auto address : {last, saved, activation}) job.Free(address, 0, 0, true);
    job.Free(job.Allocate(4096), 4096);
    job.Free(gradient, 4096);
  }
  const Judged judged(job);
  judged.Check(earlier_batch, Category::kInput, Evidence::kLifetime);
  judged.Check(activation, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(saved, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(last, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(gradient, Category::kGradient, Evidence::kLifetime);
}

TEST_CASE("what a forward had kept when memory ran out is saved, though no backward follows") {
  TestJob job(/*agent=*/false);
  const auto weight = job.Allocate(4096);
  std::uint64_t caught = 0;
  for (int step = 0; step < 3; ++step) {
    if (step == 1) {  // too large a batch: the program tries a smaller one
      caught = job.Allocate(8192);
      job.ledger.BlockOom(0, 1 << 20, 0, 1 << 20);
      job.Free(caught, 8192);
    }
    const auto activation = job.Allocate(2048);
    const auto gradient = job.Allocate(4096, 0, true);
    job.Free(activation, 2048, 0, true);
    job.Free(job.Allocate(512), 512);
    job.Free(gradient, 4096);
  }
  const auto scratch = job.Allocate(1024);
  job.Free(scratch, 1024);
  const auto last = job.Allocate(8192);
  job.ledger.BlockOom(0, 1 << 20, 0, 1 << 20);
  const Judged judged(job);
  judged.Check(weight, Category::kParameter, Evidence::kLifetime);
  judged.Check(caught, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(scratch, Category::kTemporary, Evidence::kLifetime);
  judged.Check(last, Category::kSavedActivation, Evidence::kLifetime);
}

TEST_CASE("by lifetime, what a backward node makes for itself is told from what it passes on") {
  TestJob job(/*agent=*/false);
  job.Allocate(4096);
  std::uint64_t scratch = 0, within_scratch = 0, passed_on = 0, last = 0;
  for (int step = 0; step < 3; ++step) {
    const auto activation = job.Allocate(1024);
    const auto gradient = job.Allocate(4096, 0, true);
    passed_on = job.Allocate(2048, 0, true);
    scratch = job.Allocate(8192, 0, true);
    within_scratch = job.Allocate(512, 0, true);
    job.Free(within_scratch, 512, 0, true);
    job.Free(scratch, 8192, 0, true);
    job.Free(activation, 1024, 0, true);  // the node ends
    last = job.Allocate(2048, 0, true);
    job.Free(passed_on, 2048, 0, true);
    job.Free(last, 2048, 0, true);
    job.Free(gradient, 4096);
  }
  const Judged judged(job);
  judged.Check(scratch, Category::kTemporary, Evidence::kLifetime);
  judged.Check(within_scratch, Category::kTemporary, Evidence::kLifetime);
  judged.Check(passed_on, Category::kActivationGradient, Evidence::kLifetime);
  judged.Check(last, Category::kActivationGradient, Evidence::kLifetime);
}

TEST_CASE("blocks that an all-gather's output is copied to are gathered parameters, though nobody says so") {
  TestJob job(/*agent=*/false);
  job.ledger.Communicator(0, TestJob::kCommunicator, "default_pg", 4);
  job.Allocate(4096);
  std::uint64_t first = 0, second = 0, other = 0, activation = 0;
  for (int step = 0; step < 3; ++step) {
    const auto output = job.Allocate(4096);
    job.Collect(record::Operation::kAllGather, output, output, 1000);
    other = job.Allocate(512);
    first = job.Allocate(1536), second = job.Allocate(2560);
    job.Free(output, 4096);
    activation = job.Allocate(512);
    const auto gradient = job.Allocate(4096, 0, true);
    for (const auto address : {first, second, activation, other}) job.Free(address, 0, 0, true);
    job.Free(gradient, 4096);
  }
  const Judged judged(job);
  judged.Check(first, Category::kCommBuffer, Evidence::kLifetime, Role::kGatheredParameter);
  judged.Check(second, Category::kCommBuffer, Evidence::kLifetime, Role::kGatheredParameter);
  judged.Check(other, Category::kSavedActivation, Evidence::kLifetime);
  judged.Check(activation, Category::kSavedActivation, Evidence::kLifetime);
}

// A forward whose blocks are dropped, and that runs again on backward's thread before the gradients come.
TEST_CASE("what a checkpointed region asks for again in the same order is recomputed, though no scope tells") {
  TestJob job(/*agent=*/false);
  const std::uint64_t sizes[] = {1024, 2048, 512, 4096, 1024, 8192, 512, 2048};
  const auto weight = job.Allocate(1 << 20);
  std::uint64_t kept = 0, scratch = 0, passed_on = 0;
  for (int step = 0; step < 3; ++step) {
    for (const std::uint64_t size : sizes) job.Free(job.Allocate(size), size);
    const auto boundary = job.Allocate(512);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> again;
    for (const std::uint64_t size : sizes) {
      const auto address = job.Allocate(size, 0, true);
      if (again.size() == 2) {
        job.Free(address, size, 0, true);
        scratch = address;
      }
      again.emplace_back(address, size);
    }
    kept = again.back().first;
    passed_on = job.Allocate(8192, 0, true);
    for (std::size_t i = again.size(); i-- > 0;) {
      if (i != 2) job.Free(again[i].first, again[i].second, 0, true);
    }
    job.Free(passed_on, 8192, 0, true);
    job.Free(boundary, 512, 0, true);
    const auto gradient = job.Allocate(1 << 20, 0, true);
    job.Free(gradient, 1 << 20);
  }
  const Judged judged(job);
  judged.Check(weight, Category::kParameter, Evidence::kLifetime);
  judged.Check(kept, Category::kRecomputedActivation, Evidence::kLifetime);
  judged.Check(scratch, Category::kTemporary, Evidence::kLifetime);
  judged.Check(passed_on, Category::kActivationGradient, Evidence::kLifetime);
}

// With gradient_as_bucket_view, nothing is freed between steps.
TEST_CASE("buckets in which gradients stay are gradients, and the steps are found by their reduction") {
  TestJob job(/*agent=*/false);
  job.ledger.Communicator(0, TestJob::kCommunicator, "default_pg", 2);
  const auto weight = job.Allocate(4096), bucket = job.Allocate(4096);
  std::uint64_t state = 0, activation = 0, loss = 0;
  for (int step = 0; step < 4; ++step) {
    activation = job.Allocate(2048);
    const auto new_loss = job.Allocate(512);
    if (loss != 0) job.Free(loss, 512);
    loss = new_loss;
    const auto passed_on = job.Allocate(2048, 0, true);
    job.Collect(record::Operation::kAllReduce, bucket, bucket);
    job.Free(activation, 2048, 0, true);
    job.Free(passed_on, 2048, 0, true);
    job.Free(job.Allocate(1024), 1024);
    if (step == 0) state = job.Allocate(8192);
  }
  const Judged judged(job);
  judged.Check(weight, Category::kParameter, Evidence::kLifetime);
  judged.Check(bucket, Category::kGradient, Evidence::kLifetime, Role::kAllReduceBuffer);
  judged.Check(state, Category::kOptimizerState, Evidence::kLifetime);
  judged.Check(activation, Category::kSavedActivation, Evidence::kLifetime);
  const auto& intervals = judged.attribution().phases().intervals();
  CHECK(intervals.back().step >= 3);
}

}  // namespace
}  // namespace ledger::attribution
