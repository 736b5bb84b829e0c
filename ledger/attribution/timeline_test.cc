#include "ledger/attribution/timeline.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "ledger/attribution/attribution.h"
#include "ledger/attribution/test_job.h"

namespace ledger::attribution {
namespace {

using record::NameCategory;
using record::PhaseKind;

TEST_CASE("maxima of categories are not reached together, and the peak says so") {
  TestJob job(true);
  job.Enter(PhaseKind::kForward, 0);
  const auto activation = job.Allocate(1000);
  job.Save(activation);
  job.Enter(PhaseKind::kBackward, 0);
  job.Free(activation, 1000);
  const auto gradient = job.Allocate(600);
  job.Name(gradient, NameCategory::kGradient, "w");
  job.Enter(PhaseKind::kBetween, 0);
  const auto file = *job.ledger.Read();
  const replay::Analysis analysis(file, {});
  const Attribution attribution(file, analysis.devices());
  const CategoryTimeline& timeline = *attribution.timeline(0);
  CHECK(timeline.peak_bytes == 1000);
  CHECK(timeline.sum_of_maxima == 1600);
  CHECK(timeline.maxima[Index(Category::kGradient)].bytes == 600);
  REQUIRE(timeline.phases.size() == 4);  // setup, forward, backward, between
  CHECK(timeline.phases[1].peak_bytes == 1000);
  CHECK(timeline.phases[1].end_bytes == 1000);
  CHECK(timeline.phases[2].begin_bytes == 1000);
  CHECK(timeline.phases[2].peak_bytes == 1000);
  CHECK(timeline.phases[2].end_bytes == 600);
  CHECK(timeline.phases[2].at_end[Index(Category::kGradient)] == 600);
  CHECK(timeline.phases[3].peak_bytes == 600);
}

// Against sums that are made anew from the lives at every event.
TEST_CASE("sums of random jobs are those of the blocks that are alive") {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    TestJob job(round % 2 == 0);
    std::map<std::uint64_t, std::uint64_t> alive;
    for (int i = 0; i < 200; ++i) {
      if (random() % 9 == 0) job.Enter(static_cast<PhaseKind>(random() % 6), static_cast<std::uint64_t>(i) / 40);
      if (random() % 5 < 3 || alive.empty()) {
        const std::uint64_t bytes = 512 * (1 + random() % 100);
        const auto address = job.Allocate(bytes, 0, random() % 4 == 0);
        alive[address] = bytes;
        if (random() % 2 == 0) job.Save(address);
        if (random() % 3 == 0) job.Name(address, static_cast<NameCategory>(1 + random() % 7), "w");
      } else {
        job.Free(alive.begin()->first, alive.begin()->second, 0, random() % 4 == 0);
        alive.erase(alive.begin());
      }
    }
    const auto file = *job.ledger.Read();
    const replay::Analysis analysis(file, {});
    const Attribution attribution(file, analysis.devices());
    const CategoryTimeline& timeline = *attribution.timeline(0);
    CHECK(timeline.peak_bytes == analysis.devices()[0].allocated.peak.bytes);
    CHECK(timeline.peak_slot == analysis.devices()[0].allocated.peak.slot);
    CategoryBytes maxima{};
    for (std::uint64_t slot = 0; slot < file.slots().size(); ++slot) {
      CategoryBytes now{};
      for (const std::uint64_t life : attribution.AliveAt(0, slot)) {
        now[Index(attribution.lives(0)->lives[life].category)] += attribution.lives(0)->lives[life].bytes;
      }
      for (std::size_t i = 0; i < kCategoryCount; ++i) maxima[i] = std::max(maxima[i], now[i]);
    }
    for (std::size_t i = 0; i < kCategoryCount; ++i) CHECK(timeline.maxima[i].bytes == maxima[i]);
    CHECK(timeline.phases.size() == attribution.phases().intervals().size());
    CHECK(timeline.phases.back().end_bytes == timeline.phases.back().at_end[0] + [&] {
      std::uint64_t rest = 0;
      for (std::size_t i = 1; i < kCategoryCount; ++i) rest += timeline.phases.back().at_end[i];
      return rest;
    }());
  }
}

}  // namespace
}  // namespace ledger::attribution
