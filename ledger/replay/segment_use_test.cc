#include "ledger/replay/segment_use.h"

#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"
#include "ledger/replay/analysis.h"

namespace ledger::replay {
namespace {

using format::TestLedger;
using record::Kind;

constexpr std::uint64_t kSegment = 0x10000000, kOther = 0x20000000, kPrivate = 0x30000000;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

void AddSegment(TestLedger& ledger, Kind kind, std::uint64_t address, std::uint64_t bytes, std::uint64_t pool) {
  record::Segment segment = {};
  segment.address = address;
  segment.size = bytes;
  segment.pool_id[1] = pool;
  ledger.Add(kind, 0, segment, record::Layer::kAllocator);
}

void Detail(TestLedger& ledger, Kind kind, std::uint64_t address, std::uint64_t bytes) {
  record::BlockDetail detail = {};
  detail.address = address;
  detail.size = bytes;
  ledger.Add(kind, 0, detail, record::Layer::kAllocator);
}

Balance AtEnd(const TestLedger& ledger) {
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  for (const Identity& identity : analysis.Identities()) CHECK(identity.holds);
  return analysis.BalanceAt(file.slots().size() - 1, analysis.devices()[0]);
}

TEST_CASE("what is free is inactive in a segment that is used, and cached in one that is not") {
  TestLedger ledger;
  ledger.Alloc(0, kSegment, 20 * kMiB);
  ledger.Alloc(0, kOther, 2 * kMiB);
  ledger.BlockAlloc(0, kSegment, 8 * kMiB);
  const Balance balance = AtEnd(ledger);
  CHECK(balance.free.inactive == 12 * kMiB);
  CHECK(balance.free.cached == 2 * kMiB);
  CHECK(balance.free.pending == 0);
  CHECK(balance.private_pools.empty());
}

TEST_CASE("a free that a stream holds up is pending until it completes, or until the block is used again") {
  TestLedger ledger;
  ledger.Alloc(0, kSegment, 20 * kMiB);
  ledger.BlockAlloc(0, kSegment, 8 * kMiB);
  ledger.BlockAlloc(0, kSegment + 8 * kMiB, kMiB);
  Detail(ledger, Kind::kBlockPending, kSegment, 8 * kMiB);
  ledger.BlockFree(0, kSegment, 8 * kMiB);
  Detail(ledger, Kind::kBlockPending, kSegment + 8 * kMiB, kMiB);
  ledger.BlockFree(0, kSegment + 8 * kMiB, kMiB);
  {
    const Balance balance = AtEnd(ledger);
    CHECK(balance.free.pending == 9 * kMiB);
    CHECK(balance.free.inactive == 11 * kMiB);
    CHECK(balance.free.cached == 0);
  }
  Detail(ledger, Kind::kBlockReusable, kSegment, 8 * kMiB);
  ledger.BlockAlloc(0, kSegment + 8 * kMiB, 512);
  const Balance balance = AtEnd(ledger);
  CHECK(balance.free.pending == 0);
  CHECK(balance.free.inactive == 20 * kMiB - 512);
}

TEST_CASE("private pools have accounts of their own; what is allocated in them is allocated") {
  TestLedger ledger;
  ledger.Alloc(0, kSegment, 20 * kMiB);
  ledger.Alloc(0, kPrivate, 20 * kMiB);
  AddSegment(ledger, Kind::kSegmentAlloc, kSegment, 20 * kMiB, 0);
  AddSegment(ledger, Kind::kSegmentAlloc, kPrivate, 20 * kMiB, 7);
  ledger.BlockAlloc(0, kSegment, kMiB);
  ledger.BlockAlloc(0, kPrivate, 4 * kMiB);
  {
    const Balance balance = AtEnd(ledger);
    REQUIRE(balance.private_pools.size() == 1);
    CHECK(PoolName(balance.private_pools[0].pool) == "private pool 0.7");
    CHECK(balance.private_pools[0].reserved == 20 * kMiB);
    CHECK(balance.private_pools[0].allocated == 4 * kMiB);
    CHECK(balance.private_pools[0].free.inactive == 16 * kMiB);
    CHECK(balance.PrivateFree() == 16 * kMiB);
    CHECK(balance.free.inactive == 19 * kMiB);
    CHECK(balance.allocated == 5 * kMiB);
  }
  ledger.BlockFree(0, kPrivate, 4 * kMiB);
  AddSegment(ledger, Kind::kSegmentFree, kPrivate, 20 * kMiB, 7);
  ledger.Free(0, kPrivate);
  CHECK(AtEnd(ledger).private_pools.empty());
}

TEST_CASE("a part of an expandable segment may belong to a private pool") {
  TestLedger ledger;
  ledger.Alloc(0, kSegment, 20 * kMiB);
  AddSegment(ledger, Kind::kSegmentMap, kSegment + 8 * kMiB, 8 * kMiB, 3);
  AddSegment(ledger, Kind::kSegmentUnmap, kSegment + 10 * kMiB, 2 * kMiB, 3);
  ledger.BlockAlloc(0, kSegment + 12 * kMiB, kMiB);
  const Balance balance = AtEnd(ledger);
  REQUIRE(balance.private_pools.size() == 1);
  CHECK(balance.private_pools[0].reserved == 6 * kMiB);
  CHECK(balance.private_pools[0].allocated == kMiB);
  CHECK(balance.private_pools[0].free.cached == 2 * kMiB);
  CHECK(balance.private_pools[0].free.inactive == 3 * kMiB);
  CHECK(balance.free.cached == 14 * kMiB);
}

TEST_CASE("memory for code that is loaded later belongs to the context") {
  TestLedger ledger;
  ledger.DeviceSample(0, 500 * kMiB, 80000 * kMiB);
  record::DeviceSample sample = {};
  sample.total_bytes = 80000 * kMiB;
  sample.free_bytes = sample.total_bytes - 502 * kMiB;
  sample.why = ledger.Text("cuLibraryLoadData by libtorch_cuda.so");
  ledger.Add(Kind::kDeviceSample, 0, sample, record::Layer::kDriver);
  ledger.DeviceSample(0, 503 * kMiB, 80000 * kMiB);
  const Balance balance = AtEnd(ledger);
  CHECK(balance.context == 502 * kMiB);
  CHECK(balance.unexplained == kMiB);
}

}  // namespace
}  // namespace ledger::replay
