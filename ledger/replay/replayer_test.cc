#include "ledger/replay/replayer.h"

#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"

namespace ledger::replay {
namespace {

using format::TestLedger;

TEST_CASE("blocks: a free of an unknown one and a second one at an address are counted, never below zero") {
  TestLedger ledger;
  ledger.BlockFree(0, 0x5000, 512);
  ledger.BlockAlloc(0, 0x1000, 512);
  ledger.BlockAlloc(0, 0x1000, 1024);
  ledger.BlockFree(0, 0x1000, 4096);
  const auto file = *ledger.Read();
  Replayer replay(file);
  replay.Finish();
  CHECK(replay.anomalies().unknown_block_frees == 1);
  CHECK(replay.anomalies().double_blocks == 1);
  CHECK(replay.anomalies().block_size_changes == 1);
  CHECK(replay.device(0)->peaks().now(Metric::kAllocated) == 0);
}

TEST_CASE("the allocator's own totals are compared at every event") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 4096);
  ledger.BlockAlloc(0, 0x1000, 512);
  ledger.BlockAlloc(0, 0x1200, 512);
  const std::uint64_t liar = ledger.slots() - 1;
  SECTION("an honest one agrees") {
    const auto file = *ledger.Read();
    Replayer replay(file);
    replay.Finish();
    CHECK(replay.device(0)->allocated_check().events == 2);
    CHECK(replay.device(0)->allocated_check().mismatches == 0);
    CHECK(replay.device(0)->reserved_check().mismatches == 0);
  }
  SECTION("one byte is enough") {
    ledger.At<record::Block>(liar).allocated += 1;
    ledger.At<record::Block>(liar).reserved_total -= 2;
    const auto file = *ledger.Read();
    Replayer replay(file);
    replay.Finish();
    const TotalCheck& check = replay.device(0)->allocated_check();
    CHECK(check.mismatches == 1);
    CHECK(check.first_slot == liar);
    CHECK(check.first_replayed == 1024);
    CHECK(check.first_reported == 1025);
    CHECK(replay.device(0)->reserved_check().largest_difference == 2);
  }
}

TEST_CASE("a snapshot holds what was alive right after an event") {
  TestLedger ledger;
  ledger.BlockAlloc(0, 0x2000, 512);
  ledger.BlockAlloc(0, 0x1000, 1024);
  const std::uint64_t then = ledger.slots();
  ledger.BlockFree(0, 0x2000, 512);
  const auto file = *ledger.Read();
  Replayer replay(file);
  replay.RunTo(then);
  const Snapshot snapshot = replay.TakeSnapshot(0);
  REQUIRE(snapshot.blocks.size() == 2);
  CHECK(snapshot.blocks[0].address == 0x1000);
  CHECK(snapshot.blocks[1].address == 0x2000);
  replay.Finish();
  CHECK(replay.TakeSnapshot(0).blocks.size() == 1);
  CHECK(replay.TakeSnapshot(5).blocks.empty());
}

TEST_CASE("used bytes: where the driver was not asked, its last answer and what was got or given back since") {
  constexpr std::uint64_t kMiB = 1 << 20;
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 20 * kMiB, {.used = 520 * kMiB});
  ledger.Alloc(0, 0x2000, 30 * kMiB);
  ledger.Free(0, 0x1000);
  ledger.Alloc(0, 0x3000, 25 * kMiB);
  const auto file = *ledger.Read();
  Replayer replay(file);
  replay.Finish();
  const Peak peak = replay.device(0)->peaks().RunPeak(Metric::kDeviceUsed);
  CHECK(peak.bytes == 555 * kMiB);
}

TEST_CASE("used bytes: the first answer sets the baseline, growth beyond the known is unexplained") {
  constexpr std::uint64_t kMiB = 1 << 20;
  TestLedger ledger;
  ledger.DeviceSample(0, 500 * kMiB, 1000 * kMiB);
  ledger.Alloc(0, 0x1000, 20 * kMiB, {.used = 520 * kMiB});
  ledger.Alloc(0, 0x2000, 20 * kMiB, {.used = 547 * kMiB});
  const auto file = *ledger.Read();
  Replayer replay(file);
  replay.Finish();
  const DeviceUse& use = replay.device(0)->use();
  CHECK(use.baseline == 500 * kMiB);
  CHECK(use.unexplained == 7 * kMiB);
  REQUIRE(replay.device(0)->unexplained_steps().size() == 1);
  CHECK(replay.device(0)->unexplained_steps()[0].grew_by == 7 * kMiB);
}

TEST_CASE("failed allocations, out-of-memory events and pauses are kept") {
  TestLedger ledger;
  ledger.AllocFailed(0, 1 << 20, {.result = 2});
  ledger.BlockOom(0, 1 << 20, 0, 1 << 20);
  ledger.Add(record::Kind::kPause, record::kNoDevice, record::Range{});
  const auto file = *ledger.Read();
  Replayer replay(file);
  replay.Finish();
  CHECK(replay.failures().size() == 1);
  CHECK(replay.ooms().size() == 1);
  CHECK(replay.pauses() == 1);
}

}  // namespace
}  // namespace ledger::replay
