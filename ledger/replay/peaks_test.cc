#include "ledger/replay/peaks.h"

#include <catch2/catch.hpp>

namespace ledger::replay {
namespace {

TEST_CASE("the peak is the first instant of the largest value") {
  PeakTracker peaks;
  peaks.Set(Metric::kAllocated, 10, 1);
  peaks.Set(Metric::kAllocated, 30, 2);
  peaks.Set(Metric::kAllocated, 5, 3);
  peaks.Set(Metric::kAllocated, 30, 4);
  CHECK(peaks.RunPeak(Metric::kAllocated).bytes == 30);
  CHECK(peaks.RunPeak(Metric::kAllocated).slot == 2);
  CHECK(peaks.now(Metric::kAllocated) == 30);
  CHECK(peaks.RunPeak(Metric::kReserved).bytes == 0);
}

TEST_CASE("a window opens with what is alive") {
  constexpr auto kA = static_cast<std::size_t>(Metric::kAllocated);
  PeakTracker peaks;
  peaks.Set(Metric::kAllocated, 50, 1);
  peaks.Set(Metric::kAllocated, 20, 2);
  peaks.Mark(3);
  peaks.Set(Metric::kAllocated, 10, 4);
  peaks.Finish(5);
  REQUIRE(peaks.intervals().size() == 2);
  CHECK(peaks.intervals()[0].peaks[kA].bytes == 50);
  CHECK(peaks.intervals()[0].at_end[kA] == 20);
  CHECK(peaks.intervals()[1].peaks[kA].bytes == 20);
  CHECK(peaks.intervals()[1].at_end[kA] == 10);
  // What was carried over a mark keeps its first instant.
  CHECK(peaks.RunPeak(Metric::kAllocated).slot == 1);
}

}  // namespace
}  // namespace ledger::replay
