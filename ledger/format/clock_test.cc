#include "ledger/format/clock.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>

namespace ledger::format {
namespace {

record::FileHeader TscHeader() {
  record::FileHeader header{};
  header.ticks_source = record::TicksSource::kTsc;
  header.load_ticks = 1'000;
  header.load_monotonic_ns = 500;
  header.open_ticks = 3'000;
  header.open_monotonic_ns = 1'500;
  header.open_realtime_ns = 42;
  return header;
}

TEST_CASE("ticks that are nanoseconds stay as they are") {
  record::FileHeader header{};
  header.open_ticks = header.open_monotonic_ns = 100;
  const Clock clock(header);
  CHECK(clock.MonotonicNs(250) == 250);
  CHECK(clock.SinceOpenNs(250) == 150);
  CHECK(clock.SinceOpenNs(40) == -60);
}

TEST_CASE("ticks between anchors are interpolated, beyond them extrapolated at the overall rate") {
  Clock clock(TscHeader());
  CHECK(clock.MonotonicNs(2'000) == 1'000);
  CHECK(clock.MonotonicNs(5'000) == 2'500);
  CHECK(clock.MonotonicNs(0) == 0);
  // From here on a tick takes a quarter of a nanosecond.
  REQUIRE(clock.AddAnchor(7'000, 2'500));
  CHECK(clock.MonotonicNs(5'000) == 2'000);
  CHECK(clock.MonotonicNs(2'000) == 1'000);
  CHECK(clock.MonotonicNs(10'000) == 3'500);
  CHECK(clock.open_realtime_ns() == 42);
}

TEST_CASE("an anchor that would make time go backwards is refused") {
  Clock clock(TscHeader());
  CHECK_FALSE(clock.AddAnchor(4'000, 1'400));
  CHECK_FALSE(clock.AddAnchor(2'000, 1'600));
  CHECK_FALSE(clock.AddAnchor(3'000, 1'700));
  CHECK_FALSE(clock.AddAnchor(0, 0));
  CHECK(clock.MonotonicNs(4'000) == 2'000);
}

TEST_CASE("absurd ticks saturate") {
  Clock clock(TscHeader());
  REQUIRE(clock.AddAnchor(3'001, std::numeric_limits<std::uint64_t>::max()));
  CHECK(clock.MonotonicNs(std::numeric_limits<std::uint64_t>::max()) == std::numeric_limits<std::int64_t>::max() / 2);
}

}  // namespace
}  // namespace ledger::format
