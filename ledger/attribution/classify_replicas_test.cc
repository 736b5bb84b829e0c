// By lifetimes and calls alone: what jobs of several ranks keep beside weights, gradients and optimizer state.
#include <catch2/catch.hpp>
#include <vector>

#include "ledger/attribution/judged.h"

namespace ledger::attribution {
namespace {

// A wrapper that puts gradients into buckets makes these anew in the second forward, when it knows their order.
TEST_CASE("by lifetime, what a later forward makes and keeps is no state of the optimizer, which is there already") {
  TestJob job(/*agent=*/false);
  job.Allocate(4096);
  std::uint64_t state = 0, bucket = 0, large_bucket = 0;
  for (int step = 0; step < 4; ++step) {
    const auto activation = job.Allocate(1024);
    if (step == 1) bucket = job.Allocate(8192), large_bucket = job.Allocate(8704);
    const auto gradient = job.Allocate(4096, 0, true);
    job.Free(activation, 1024, 0, true);
    if (step == 0) state = job.Allocate(8192);
    job.Free(gradient, 4096);
  }
  const Judged judged(job);
  judged.Check(state, Category::kOptimizerState, Evidence::kLifetime);
  judged.Check(bucket, Category::kBuffer, Evidence::kLifetime, Role::kStateOfProgram);
  judged.Check(large_bucket, Category::kOptimizerState, Evidence::kLifetime);
}

// A sharded job: one flat gradient for several weights.
Judged JobWithFlatGradient(const std::vector<std::uint64_t>& weights, std::uint64_t gradient) {
  TestJob job(/*agent=*/false);
  for (const std::uint64_t size : weights) job.Allocate(size);
  for (int step = 0; step < 3; ++step) {
    const auto activation = job.Allocate(1024);
    const auto flat = job.Allocate(gradient, 0, true);
    job.Free(activation, 1024, 0, true);
    job.Free(flat, gradient);
  }
  return Judged(job);
}

TEST_CASE("by lifetime, weights of twice the bytes of flat gradients, and twice of each size, have a copy") {
  const auto at = [](std::uint64_t number) { return TestJob::kSegment + (number << 24); };
  const Judged copied = JobWithFlatGradient({65536, 8192, 32768, 32768, 65536, 8192}, 106496);
  for (const std::uint64_t weight : {1u, 2u, 3u}) copied.Check(at(weight), Category::kParameter, Evidence::kLifetime);
  for (const std::uint64_t copy : {4u, 5u, 6u}) {
    copied.Check(at(copy), Category::kBuffer, Evidence::kLifetime, Role::kStateOfProgram);
  }
  // As many bytes as the gradient: two layers of one shape. Or other sizes.
  const Judged layers = JobWithFlatGradient({65536, 8192, 32768, 32768, 65536, 8192}, 212992);
  const Judged others = JobWithFlatGradient({65536, 8192, 32768, 32768, 65536, 8192, 1024}, 106496);
  for (const std::uint64_t weight : {1u, 2u, 3u, 4u, 5u, 6u}) {
    layers.Check(at(weight), Category::kParameter, Evidence::kLifetime);
    others.Check(at(weight), Category::kParameter, Evidence::kLifetime);
  }
}

// Buckets are gradients where a job never makes one anew. An optimizer that steps while they are reduced makes its
// state in backward.
TEST_CASE("buckets stay gradients though an optimizer makes its state inside of backward") {
  TestJob job(/*agent=*/false);
  job.ledger.Communicator(0, TestJob::kCommunicator, "default_pg", 2);
  job.Allocate(4096);
  const auto bucket = job.Allocate(4096);
  for (int step = 0; step < 5; ++step) {
    const auto activation = job.Allocate(2048);
    const auto passed_on = job.Allocate(2048, 0, true);
    job.Collect(record::Operation::kAllReduce, bucket, bucket);
    if (step == 2) job.Allocate(8192, 0, true);
    job.Free(activation, 2048, 0, true);
    job.Free(passed_on, 2048, 0, true);
    job.Free(job.Allocate(1024), 1024);
  }
  Judged(job).Check(bucket, Category::kGradient, Evidence::kLifetime, Role::kAllReduceBuffer);
}

TEST_CASE("by lifetime, what a forward receives from other ranks and its backward gives back is an activation") {
  for (const auto operation : {record::Operation::kAllToAll, record::Operation::kReduceScatter,
                               record::Operation::kReceive, record::Operation::kAllGather}) {
    TestJob job(/*agent=*/false);
    job.ledger.Communicator(0, TestJob::kCommunicator, "default_pg", 2);
    job.Allocate(4096);
    std::uint64_t received = 0, sent = 0;
    for (int step = 0; step < 3; ++step) {
      const auto activation = job.Allocate(1024);
      sent = job.Allocate(2048), received = job.Allocate(2048);
      job.Collect(operation, operation == record::Operation::kReceive ? 0 : sent, received);
      job.Free(sent, 2048);
      const auto gradient = job.Allocate(4096, 0, true);
      job.Free(received, 2048, 0, true);
      job.Free(activation, 1024, 0, true);
      job.Free(gradient, 4096);
    }
    const Judged judged(job);
    // Gathered parameters are given back in backward, too.
    const bool gathers = operation == record::Operation::kAllGather;
    const auto category = gathers ? Category::kCommBuffer : Category::kSavedActivation;
    CHECK(CategoryName(judged.At(received).category) == CategoryName(category));
    if (operation == record::Operation::kAllToAll) {
      judged.Check(sent, Category::kCommBuffer, Evidence::kCall, Role::kAllToAllBuffer);
    }
  }
}

TEST_CASE("a block of an all-gather's size is a copy of its output where ranks gather in place, as FSDP2 does") {
  for (const bool in_place : {true, false}) {
    TestJob job(/*agent=*/false);
    job.ledger.Communicator(0, TestJob::kCommunicator, "default_pg", 4);
    const auto weight = job.Allocate(4096);
    std::uint64_t like = 0;  // the output, by its size
    for (int step = 0; step < 3; ++step) {
      const auto output = job.Allocate(4096);
      job.Collect(record::Operation::kAllGather, in_place ? output + 2048 : weight, output, 1024);
      like = job.Allocate(4096);
      job.Free(output, 4096);
      const auto gradient = job.Allocate(4096, 0, true);
      job.Free(like, 4096, 0, true);
      job.Free(gradient, 4096);
    }
    const Judged judged(job);
    if (in_place) {
      judged.Check(like, Category::kCommBuffer, Evidence::kLifetime, Role::kGatheredParameter);
    } else {
      judged.Check(like, Category::kSavedActivation, Evidence::kLifetime);
    }
  }
}

}  // namespace
}  // namespace ledger::attribution
