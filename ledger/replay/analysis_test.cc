#include "ledger/replay/analysis.h"

#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"
#include "ledger/replay/record_fields.h"

namespace ledger::replay {
namespace {

using format::TestLedger;

const Identity* Find(const std::vector<Identity>& identities, const std::string& name) {
  for (const Identity& identity : identities) {
    if (identity.name == name) return &identity;
  }
  return nullptr;
}

TEST_CASE("a high-water mark has its instant, its phase and its complete live set") {
  TestLedger ledger;
  const std::uint32_t forward = ledger.Scope(0, "forward");
  ledger.Alloc(0, 0x1000, 1 << 20);
  ledger.BlockAlloc(0, 0x1000, 512);
  ledger.BlockAlloc(0, 0x2000, 1024, forward);
  ledger.BlockFree(0, 0x1000, 512);
  ledger.BlockAlloc(0, 0x1000, 256);
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  REQUIRE(analysis.devices().size() == 1);
  const DeviceAnalysis& device = analysis.devices()[0];
  CHECK(device.backend == Backend::kBlocks);
  CHECK(device.allocated.peak.bytes == 1536);
  CHECK(device.allocated.phase == "forward");
  CHECK(device.allocated.time_ns > 0);
  CHECK(device.allocated.snapshot.blocks.size() == 2);
  CHECK(device.reserved.peak.bytes == 1 << 20);
  CHECK(AllHold(analysis.Identities()));
}

TEST_CASE("where the agent told of phases, they are named before the path") {
  TestLedger ledger;
  const std::uint32_t layer = ledger.Scope(0, "layer");
  ledger.BlockAlloc(0, 0x1000, 512, layer);
  const std::uint64_t before = ledger.slots() - 1;
  record::Phase phase{};
  phase.step = 3;
  phase.phase = record::PhaseKind::kBackward;
  ledger.Add(record::Kind::kPhase, record::kNoDevice, phase);
  ledger.BlockAlloc(0, 0x2000, 512, layer);
  ledger.BlockAlloc(0, 0x3000, 512);
  const std::uint64_t last = ledger.slots() - 1;
  phase.phase = record::PhaseKind::kEvaluation;
  ledger.Add(record::Kind::kPhase, record::kNoDevice, phase);
  ledger.BlockFree(0, 0x3000, 512);
  const auto file = *ledger.Read();
  CHECK(PhaseAt(file, before) == "layer");
  CHECK(PhaseAt(file, last - 1) == "step 3 backward: layer");
  CHECK(PhaseAt(file, last) == "step 3 backward");
  CHECK(PhaseAt(file, last + 2) == "evaluation");
  CHECK(PhaseAt(file, last + 100).empty());
  CHECK(Analysis(file, {}).devices()[0].allocated.phase == "step 3 backward");
}

TEST_CASE("devices are told apart") {
  TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 512);
  ledger.BlockAlloc(3, 0x2000, 1024);
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  REQUIRE(analysis.devices().size() == 2);
  CHECK(analysis.devices()[0].allocated.peak.bytes == 512);
  CHECK(analysis.devices()[1].device == 3);
  CHECK(analysis.devices()[1].allocated.peak.bytes == 1024);
}

TEST_CASE("without block events the driver layer stands in") {
  TestLedger ledger;
  SECTION("every tensor a driver allocation") {
    ledger.Alloc(0, 0x1000, 700);
    ledger.Alloc(0, 0x2000, 300);
    ledger.Free(0, 0x1000);
    const auto file = *ledger.Read();
    const Analysis analysis(file, {});
    CHECK(analysis.devices()[0].backend == Backend::kUncached);
    CHECK(analysis.devices()[0].allocated.peak.bytes == 1000);
    CHECK(analysis.devices()[0].reserved.peak.bytes == 1000);
    CHECK(AllHold(analysis.Identities()));
  }
  SECTION("stream-ordered pools") {
    ledger.Alloc(0, 0x1000, 700, {.memory = record::Memory::kAsync});
    ledger.PoolSample(0, 1, 700, 4096);
    ledger.Free(0, 0x1000, record::Memory::kAsync);
    const auto file = *ledger.Read();
    const Analysis analysis(file, {});
    CHECK(analysis.devices()[0].backend == Backend::kStreamOrdered);
    CHECK(analysis.devices()[0].allocated.peak.bytes == 700);
    CHECK(analysis.devices()[0].reserved.peak.bytes == 4096);
    CHECK(analysis.devices()[0].reserved.balance.free.Sum() == 4096 - 700);
    CHECK(AllHold(analysis.Identities()));
  }
}

TEST_CASE("a ledger that contradicts the allocator's totals fails by name") {
  TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 512);
  ledger.At<record::Block>(ledger.slots() - 1).allocated = 513;
  const auto file = *ledger.Read();
  const auto identities = Analysis(file, {}).Identities();
  REQUIRE(Find(identities, kAllocatedIdentity) != nullptr);
  CHECK_FALSE(Find(identities, kAllocatedIdentity)->holds);
  CHECK(Find(identities, kAllocatedIdentity)->detail.find("replayed 512, reported 513") != std::string::npos);
  CHECK(Find(identities, kReservedIdentity)->holds);
}

TEST_CASE("known bytes beyond what the driver says is used are an error, and no negative account") {
  TestLedger ledger;
  ledger.DeviceSample(0, 100, 1000);
  ledger.Alloc(0, 0x1000, 500, {.used = 400});
  ledger.BlockAlloc(0, 0x1000, 500);
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  const auto identities = analysis.Identities();
  CHECK_FALSE(Find(identities, kAccountsIdentity)->holds);
  CHECK(analysis.devices()[0].used.balance.overdrawn == 100);
  CHECK(analysis.devices()[0].used.balance.context == 0);
}

TEST_CASE("windows lie between marks, and open with what is alive") {
  constexpr auto kA = static_cast<std::size_t>(Metric::kAllocated);
  TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 1000);
  ledger.BlockFree(0, 0x1000, 1000);
  ledger.BlockAlloc(0, 0x2000, 100);
  ledger.Mark("a");
  ledger.Mark("b");
  ledger.BlockAlloc(0, 0x3000, 200);
  ledger.BlockFree(0, 0x3000, 200);
  ledger.Mark("a");
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  const auto a = FindMark(file, "a");
  const auto b = FindMark(file, "b", a);
  const auto second_a = FindMark(file, "a", b);
  REQUIRE((a && b && second_a));
  CHECK(analysis.WindowBetween(0, std::nullopt, a)->max[kA] == 1000);
  CHECK(analysis.WindowBetween(0, a, b)->max[kA] == 100);
  CHECK(analysis.WindowBetween(0, b, second_a)->max[kA] == 300);
  CHECK(analysis.WindowBetween(0, b, second_a)->at_end[kA] == 100);
  CHECK(analysis.WindowBetween(0, a, std::nullopt)->max[kA] == 300);
  CHECK_FALSE(analysis.WindowBetween(4, a, b).has_value());
  CHECK_FALSE(FindMark(file, "c").has_value());
}

TEST_CASE("an empty ledger has nothing to say, and says it") {
  TestLedger ledger;
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  CHECK(analysis.devices().empty());
  CHECK(analysis.Identities().empty());
}

}  // namespace
}  // namespace ledger::replay
