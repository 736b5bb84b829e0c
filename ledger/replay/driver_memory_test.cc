#include "ledger/replay/driver_memory.h"

#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"
#include "ledger/replay/replayer.h"

namespace ledger::replay {
namespace {

using format::TestLedger;
using record::Kind;
using record::Memory;

// Replays a ledger and keeps what it was read from.
struct Replayed {
  explicit Replayed(const TestLedger& ledger) : file(*ledger.Read()), replay(file) { replay.Finish(); }
  const DriverMemory& driver() const { return replay.driver(); }
  format::LedgerFile file;
  Replayer replay;
};

TEST_CASE("memory is charged to the device or to the host, by its kind") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 1);
  ledger.Alloc(0, 0x2000, 2, {.owner = "libcublas.so.13"});
  ledger.Alloc(0, 0x3000, 4, {.owner = "python3", .memory = Memory::kPitched});
  ledger.Alloc(0, 0x4000, 8, {.owner = "python3", .memory = Memory::kArray});
  ledger.Alloc(record::kNoDevice, 0x5000, 16, {.memory = Memory::kHost});
  ledger.Alloc(record::kNoDevice, 0x6000, 32, {.memory = Memory::kHostRegistered});
  ledger.Alloc(0, 0x7000, 64, {.memory = Memory::kManaged});
  ledger.Alloc(1, 0x8000, 128);
  ledger.Alloc(0, 0x9000, 256, {.memory = Memory::kPeer});
  ledger.HandleCreate(record::kNoDevice, 1, 512, {.memory = Memory::kPhysicalHost});
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).segments == 1);
  CHECK(replayed.driver().device(0).Known() == 15);
  CHECK(replayed.driver().device(1).Known() == 128);
  CHECK(replayed.driver().host().pinned == 16 + 512);
  CHECK(replayed.driver().host().registered == 32);
  CHECK(replayed.driver().host().managed == 64);
  CHECK(replayed.replay.anomalies().Total() == 0);
}

TEST_CASE("frees of unknown memory are counted and move nothing") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 100);
  ledger.Free(0, 0x2000);
  ledger.Free(0, 0x1000);
  ledger.Free(0, 0x1000);
  ledger.HandleEvent(Kind::kHandleRelease, 0, 5);
  ledger.Unmap(0, 0x1000, 0x1000);
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).Known() == 0);
  CHECK(replayed.replay.anomalies().unknown_frees == 4);
}

TEST_CASE("a free that failed leaves the memory alive") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 100);
  ledger.HandleCreate(0, 1, 1 << 20, {.owner = "python3"});
  ledger.Free(0, 0x1000);
  ledger.Free(0, 0x1000);
  ledger.At<record::Allocation>(ledger.slots() - 1).result = 1;
  ledger.HandleEvent(Kind::kHandleRelease, 0, 1);
  ledger.HandleEvent(Kind::kHandleRelease, 0, 1);
  ledger.At<record::Allocation>(ledger.slots() - 1).result = 1;
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).Known() == 100 + (1 << 20));
  CHECK(replayed.replay.anomalies().Total() == 0);
}

TEST_CASE("an allocation where memory is alive replaces it, and is counted") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 100);
  ledger.Alloc(0, 0x1000, 30);
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).Known() == 30);
  CHECK(replayed.replay.anomalies().double_allocs == 1);
}

TEST_CASE("registered host memory has the caller's addresses, which others may have, too") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 100);
  ledger.Alloc(record::kNoDevice, 0x1000, 7, {.memory = Memory::kHostRegistered});
  ledger.Free(record::kNoDevice, 0x1000, Memory::kHostRegistered);
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).Known() == 100);
  CHECK(replayed.driver().host().registered == 0);
  CHECK(replayed.replay.anomalies().Total() == 0);
}

TEST_CASE("expandable segments are reserved as physical memory, wherever they are mapped") {
  TestLedger ledger;
  ledger.HandleCreate(0, 1, 2 << 20, {.call = "cuMemCreate"});
  ledger.Map(0, 0x10000000, 2 << 20, 1);
  ledger.HandleCreate(0, 2, 2 << 20, {.call = "cuMemCreate"});
  ledger.Map(0, 0x10000000 + (2 << 20), 2 << 20, 2);
  {
    const Replayed replayed(ledger);
    CHECK(replayed.driver().device(0).segments == 4 << 20);
    const Snapshot snapshot = replayed.replay.TakeSnapshot(0);
    REQUIRE(snapshot.segments.size() == 1);
    CHECK(snapshot.segments[0].bytes == 4 << 20);
  }
  ledger.Unmap(0, 0x10000000, 2 << 20);
  ledger.HandleEvent(Kind::kHandleRelease, 0, 1);
  CHECK(Replayed(ledger).driver().device(0).segments == 2 << 20);
}

TEST_CASE("imported handles are another process's memory") {
  TestLedger ledger;
  record::Allocation import{};
  import.address = 9;
  import.size = 1 << 20;
  import.memory = Memory::kPhysical;
  ledger.Add(Kind::kHandleImport, 0, import);
  ledger.Map(0, 0x10000000, 1 << 20, 9);
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).Known() == 0);
  CHECK(replayed.replay.anomalies().Total() == 0);
}

TEST_CASE("pools hold what they say, and at least what is alive in them") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 100, {.owner = "python3", .memory = Memory::kAsync});
  CHECK(Replayed(ledger).driver().device(0).Known() == 100);
  ledger.PoolSample(0, 77, 100, 4096);
  CHECK(Replayed(ledger).driver().device(0).Known() == 4096);
  ledger.PoolSample(0, 77, 0, 0);
  CHECK(Replayed(ledger).driver().device(0).Known() == 100);
}

TEST_CASE("a device reset takes everything on that device") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 100);
  ledger.Alloc(1, 0x2000, 50);
  ledger.Alloc(record::kNoDevice, 0x3000, 7, {.memory = Memory::kHost});
  ledger.HandleCreate(0, 1, 1 << 20, {});
  ledger.PoolSample(0, 77, 0, 4096);
  ledger.BlockAlloc(0, 0x1000, 100);
  ledger.Add(Kind::kDeviceReset, 0, record::DeviceSample{});
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).Known() == 0);
  CHECK(replayed.driver().device(1).Known() == 50);
  CHECK(replayed.driver().host().pinned == 7);
  CHECK(replayed.replay.device(0)->blocks().empty());
}

TEST_CASE("sizes and devices that cannot be are left out, and counted") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, ~std::uint64_t{0});
  ledger.Alloc(record::kNoDevice, 0x2000, 100);
  ledger.BlockAlloc(0, 0x1000, ~std::uint64_t{0});
  ledger.BlockAlloc(-5, 0x1000, 512);
  const Replayed replayed(ledger);
  CHECK(replayed.driver().device(0).Known() == 0);
  CHECK(replayed.replay.anomalies().implausible == 4);
}

}  // namespace
}  // namespace ledger::replay
