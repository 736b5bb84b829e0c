#include "ledger/replay/balance.h"

#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"
#include "ledger/replay/analysis.h"
#include "ledger/replay/communicator_name.h"

namespace ledger::replay {
namespace {

using format::TestLedger;

constexpr std::uint64_t kMiB = 1 << 20;

TEST_CASE("the accounts of a device add up to what is used, to the byte") {
  TestLedger ledger;
  ledger.DeviceSample(0, 500 * kMiB, 80000 * kMiB);
  ledger.Alloc(0, 0x1000, 20 * kMiB, {.used = 520 * kMiB});
  const std::uint64_t token = (std::uint64_t{1} << 63) | 1;
  ledger.HandleCreate(0, 1, 8 * kMiB, {.owner = "libnccl.so.2", .used = 528 * kMiB, .context = token});
  ledger.Communicator(0, 0xabc, "tp", 8, token);
  ledger.Alloc(0, 0x3000, 4 * kMiB, {.owner = "libnccl.so.2", .used = 532 * kMiB, .context = 0xabc});
  ledger.Alloc(0, 0x4000, 2 * kMiB, {.owner = "libcublas.so.13", .used = 534 * kMiB});
  ledger.Alloc(0, 0x5000, 1 * kMiB, {.owner = "python3.11", .used = 540 * kMiB});
  ledger.BlockAlloc(0, 0x1000, 3 * kMiB);
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  const Balance& balance = analysis.devices()[0].allocated.balance;
  CHECK(balance.used == 540 * kMiB);
  CHECK(balance.used_note.empty());
  CHECK(balance.reserved == 20 * kMiB);
  CHECK(balance.allocated == 3 * kMiB);
  CHECK(balance.free.Sum() == 17 * kMiB);
  REQUIRE(balance.nccl.size() == 1);
  CHECK(balance.nccl[0].name == "communicator 0 \"tp\", 8 ranks");
  CHECK(balance.nccl[0].bytes == 12 * kMiB);
  REQUIRE(balance.libraries.size() == 1);
  CHECK(balance.libraries[0].name == "libcublas.so.13");
  REQUIRE(balance.program.size() == 1);
  CHECK(balance.program[0].name == "python3.11");
  CHECK(balance.context == 500 * kMiB);
  CHECK(balance.unexplained == 5 * kMiB);
  CHECK(balance.Sum() == balance.used);
}

TEST_CASE("between two answers of the driver, what was given back is known") {
  TestLedger ledger;
  ledger.DeviceSample(0, 500 * kMiB, 80000 * kMiB);
  ledger.Alloc(0, 0x1000, 20 * kMiB, {.used = 520 * kMiB});
  ledger.Free(0, 0x1000);
  ledger.BlockAlloc(0, 0x2000, 512);
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  const Balance& balance = analysis.devices()[0].allocated.balance;
  CHECK(balance.used == 500 * kMiB);
  CHECK_FALSE(balance.used_note.empty());
}

TEST_CASE("a handle that comes back for another communicator is told apart by time") {
  TestLedger ledger;
  ledger.Communicator(0, 0xabc, "first", 2);
  ledger.Alloc(0, 0x1000, 1, {.owner = "libnccl.so.2", .context = 0xabc});
  const std::uint64_t early = ledger.slots() - 1;
  ledger.Communicator(0, 0xabc, "second", 2);
  ledger.Alloc(0, 0x2000, 1, {.owner = "libnccl.so.2", .context = 0xabc});
  const std::uint64_t late = ledger.slots() - 1;
  const auto file = *ledger.Read();
  CHECK(CommunicatorName(file, 0xabc, early) == "communicator 0 \"first\", 2 ranks");
  CHECK(CommunicatorName(file, 0xabc, late) == "communicator 1 \"second\", 2 ranks");
  CHECK(CommunicatorName(file, 0, late) == "communicator not known");
  CHECK(CommunicatorName(file, 0x123, late) == "communicator that was never finished");
}

TEST_CASE("requested bytes are shown for the blocks of which they are known") {
  TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 1024, 0, 1000);
  ledger.BlockAlloc(0, 0x2000, 512);
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  const RequestedBytes requested = RequestedOf(file, analysis.devices()[0].allocated.snapshot);
  CHECK(requested.blocks == 2);
  CHECK(requested.known_blocks == 1);
  CHECK(requested.requested == 1000);
  CHECK(requested.rounded == 1024);
}

TEST_CASE("sites are sorted by size, then by name") {
  TestLedger ledger;
  const std::uint32_t a = ledger.Scope(0, "a"), b = ledger.Scope(0, "b"), c = ledger.Scope(0, "c");
  ledger.BlockAlloc(0, 0x1000, 512, c);
  ledger.BlockAlloc(0, 0x2000, 512, a);
  ledger.BlockAlloc(0, 0x3000, 512, b);
  ledger.BlockAlloc(0, 0x4000, 512, b);
  const auto file = *ledger.Read();
  const Analysis analysis(file, {});
  const auto sites = SitesOf(file, analysis.devices()[0].allocated.snapshot, Backend::kBlocks);
  REQUIRE(sites.size() == 3);
  CHECK(sites[0].scope == "b");
  CHECK(sites[0].count == 2);
  CHECK(sites[1].scope == "a");
  CHECK(sites[2].scope == "c");
}

}  // namespace
}  // namespace ledger::replay
