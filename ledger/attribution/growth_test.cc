#include "ledger/attribution/growth.h"

#include <catch2/catch.hpp>

#include "ledger/attribution/attribution.h"
#include "ledger/attribution/test_job.h"

namespace ledger::attribution {
namespace {

using record::Layer;
using record::PhaseKind;

std::vector<Growth> GrowthOf(const TestJob& job) {
  const auto file = *job.ledger.Read();
  const replay::Analysis analysis(file, {});
  const Attribution attribution(file, analysis.devices());
  return GrowthOf(attribution.grounds(), *attribution.lives(0));
}

// A module with an op in which blocks are allocated.
std::uint32_t Place(TestJob& job) {
  return job.Scope(job.Scope(0, "head", record::kScopeModule, Layer::kAgent), "aten::mm", 0, Layer::kOp);
}

TEST_CASE("an evaluation that keeps its results grows with its site, and the training around it does not") {
  TestJob job(/*agent=*/true);
  const std::uint32_t place = Place(job);
  for (std::uint64_t step = 0; step < 8; ++step) {
    job.Enter(PhaseKind::kForward, step);
    const auto activation = job.Allocate(4096, place);
    job.Enter(PhaseKind::kBackward, step);
    job.Free(activation, 4096);
    job.Enter(PhaseKind::kBetween, step);
    if (step % 4 != 3) continue;
    for (int batch = 0; batch < 4; ++batch) {
      job.Enter(PhaseKind::kEvaluation, step);
      job.Allocate(1024, place);
      job.Enter(PhaseKind::kBetween, step);
    }
  }
  const auto growths = GrowthOf(job);
  REQUIRE(growths.size() == 1);
  CHECK(growths[0].evaluation);
  CHECK(growths[0].member == "head: aten::mm");
  CHECK(growths[0].rounds == 3);  // of eight evaluations the last four, of which the first is what it grew from
  CHECK(growths[0].grown_bytes == 3 * 1024);
  CHECK(growths[0].live_bytes == 8 * 1024);
  CHECK(growths[0].live_blocks == 8);
}

TEST_CASE("a list of losses that is never cleared grows with every step") {
  TestJob job(/*agent=*/true);
  for (std::uint64_t step = 0; step < 6; ++step) {
    job.Enter(PhaseKind::kForward, step);
    job.Allocate(512, Place(job));
    job.Enter(PhaseKind::kOptimizer, step);
  }
  const auto growths = GrowthOf(job);
  REQUIRE(growths.size() == 1);
  CHECK_FALSE(growths[0].evaluation);
  CHECK(growths[0].grown_bytes / growths[0].rounds == 512);
}

TEST_CASE("a place is the same one when its ops are no longer observed") {
  TestJob job(/*agent=*/true);
  const std::uint32_t module = job.Scope(0, "head", record::kScopeModule, Layer::kAgent);
  const std::uint32_t op = job.Scope(module, "aten::mm", 0, Layer::kOp);
  for (std::uint64_t step = 0; step < 6; ++step) {
    job.Enter(PhaseKind::kForward, step);
    job.Allocate(512, step < 4 ? op : module);
  }
  const auto growths = GrowthOf(job);
  REQUIRE(growths.size() == 1);
  CHECK(growths[0].live_blocks == 6);
}

TEST_CASE("a window of the last results, and what is made once, do not grow") {
  TestJob job(/*agent=*/true);
  const std::uint32_t place = Place(job);
  std::vector<std::uint64_t> window;
  for (std::uint64_t step = 0; step < 12; ++step) {
    job.Enter(PhaseKind::kForward, step);
    if (step == 1) job.Allocate(8192, place);
    window.push_back(job.Allocate(512, place));
    if (window.size() > 3) job.Free(window[window.size() - 4], 512);
    job.Enter(PhaseKind::kOptimizer, step);
  }
  CHECK(GrowthOf(job).empty());
}

TEST_CASE("few rounds say nothing") {
  TestJob job(/*agent=*/true);
  for (std::uint64_t step = 0; step + 1 < kFewestRounds; ++step) {
    job.Enter(PhaseKind::kForward, step);
    job.Allocate(512, Place(job));
  }
  CHECK(GrowthOf(job).empty());
}

}  // namespace
}  // namespace ledger::attribution
