// Any input: a Status or an answer, never a crash. Sanitizers make this test sharp.
#include <catch2/catch.hpp>
#include <cstddef>
#include <vector>

#include "ledger/format/test_ledger.h"
#include "ledger/replay/analysis.h"
#include "ledger/replay/truth.h"

namespace ledger::replay {
namespace {

using format::LedgerFile;
using format::TestLedger;

// One of everything.
std::vector<std::byte> SmallLedger() {
  TestLedger ledger;
  ledger.Device(0, 80ull << 30, "Simulated H100", true);
  ledger.Setting("version.torch", "2.15.0");
  const std::uint32_t scope = ledger.Scope(ledger.Scope(0, "step 0"), std::string(60, 's'));
  ledger.DeviceSample(0, 1 << 20, 1 << 30);
  ledger.Alloc(0, 0x1000, 1 << 20, {.scope = scope, .used = 2 << 20});
  ledger.HandleCreate(0, 1, 2 << 20, {.call = "cuMemCreate"});
  ledger.Map(0, 0x10000000, 2 << 20, 1);
  ledger.BlockAlloc(0, 0x1000, 512, scope, 500);
  ledger.BlockAlloc(0, 0x2000, 512, scope);
  ledger.Communicator(0, 7, "dp", 2);
  ledger.ProcessGroup(7, "1", "mesh_dp", 2, 0, 4);
  ledger.Alloc(0, 0x9000, 4096, {.owner = "libnccl.so.2", .context = 7});
  ledger.PoolSample(0, 3, 10, 20);
  ledger.Mark("m");
  ledger.ValueRead(0, "train.py:3 main");
  ledger.BlockOom(0, 1 << 30, 0, 1 << 30);
  ledger.BlockFree(0, 0x1000, 512);
  ledger.Unmap(0, 0x10000000, 2 << 20);
  ledger.HandleEvent(record::Kind::kHandleRelease, 0, 1);
  ledger.Free(0, 0x1000);
  ledger.Add(record::Kind::kDeviceReset, 0, record::DeviceSample{});
  return ledger.Bytes();
}

// Replays whatever opens; returns whether it opened.
bool Consume(const std::vector<std::byte>& bytes) {
  const auto file = LedgerFile::FromBytes(bytes, "hostile");
  if (!file.ok()) {
    CHECK_FALSE(file.status().message().empty());
    return false;
  }
  const Analysis analysis(*file, {{{0, 0}}, nullptr});
  for (const auto& device : analysis.devices()) {
    SitesOf(*file, device.allocated.snapshot, device.backend);
    RequestedOf(*file, device.allocated.snapshot);
  }
  analysis.Identities();
  return true;
}

TEST_CASE("a ledger cut off at any byte reads up to there") {
  const auto whole = SmallLedger();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK(Consume(cut) == (size >= record::kHeaderBytes));
  }
}

TEST_CASE("a cut costs no more than the records behind it") {
  const auto whole = SmallLedger();
  const auto complete = LedgerFile::FromBytes(whole, "whole");
  for (std::size_t size = record::kHeaderBytes; size <= whole.size(); ++size) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto file = LedgerFile::FromBytes(cut, "cut");
    REQUIRE(file.ok());
    CHECK(file->slots().size() == (size - record::kHeaderBytes) / record::kRecordBytes);
    CHECK(file->slots().size() + file->counts().cut_off == complete->slots().size());
  }
}

TEST_CASE("a ledger with any byte flipped is read or refused") {
  const auto whole = SmallLedger();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    // The rest of the header page is empty.
    if (i == sizeof(record::FileHeader)) i = record::kHeaderBytes;
    for (const unsigned mask : {0xffu, 0x80u, 0x01u}) {
      auto flipped = whole;
      flipped[i] ^= static_cast<std::byte>(mask);
      Consume(flipped);
    }
  }
}

}  // namespace
}  // namespace ledger::replay
