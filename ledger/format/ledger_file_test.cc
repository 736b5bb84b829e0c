#include "ledger/format/ledger_file.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "ledger/format/test_ledger.h"

namespace ledger::format {
namespace {

std::string MessageOf(const std::vector<std::byte>& bytes) {
  return std::string(LedgerFile::FromBytes(bytes, "x.ledger").status().message());
}

TEST_CASE("an empty ledger is a ledger") {
  TestLedger ledger;
  const auto file = ledger.Read();
  REQUIRE(file.ok());
  CHECK(file->slots().empty());
  CHECK(file->clean_end());
  CHECK(file->program() == "python train.py");
  CHECK(file->host() == "node0");
}

TEST_CASE("a file from the disk reads like one from memory") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 512);
  char path[] = "/tmp/ledger_file_test.XXXXXX";
  const int fd = mkstemp(path);
  REQUIRE(fd >= 0);
  REQUIRE(ledger.WriteTo(path));
  const auto file = LedgerFile::Open(path);
  REQUIRE(file.ok());
  CHECK(file->slots().size() == ledger.slots());
  CHECK(file->counts().committed == ledger.slots());
  std::remove(path);
  const auto missing = LedgerFile::Open(path);
  CHECK(missing.status().code() == absl::StatusCode::kNotFound);
  CHECK(absl::StrContains(missing.status().message(), path));
  CHECK_FALSE(LedgerFile::Open("/").ok());
}

TEST_CASE("a damaged header is named with its place, what was expected and what is there") {
  TestLedger ledger;
  SECTION("magic") {
    auto bytes = ledger.Bytes();
    bytes[0] = std::byte{'X'};
    CHECK(absl::StrContains(MessageOf(bytes), "x.ledger:0: expected the magic \"GPULEDGR\", got \"XPULEDGR\""));
  }
  SECTION("major version") {
    ledger.header().version_major = 9;
    CHECK(absl::StrContains(MessageOf(ledger.Bytes()), "x.ledger:8: expected format version 1.x, got 9.0"));
  }
  SECTION("a newer minor version is read") {
    ledger.header().version_minor = 99;
    CHECK(ledger.Read().ok());
  }
  SECTION("record size") {
    ledger.header().record_bytes = 63;
    CHECK(absl::StrContains(MessageOf(ledger.Bytes()), "expected records of 64 bytes, got 63"));
  }
  SECTION("header size") {
    auto bytes = ledger.Bytes();
    bytes.resize(3000);
    CHECK(absl::StrContains(MessageOf(bytes),
                            "x.ledger:12: expected a header of 4096 bytes, got 4096 in a file of 3000"));
  }
  SECTION("no header at all") {
    CHECK(absl::StrContains(MessageOf(std::vector<std::byte>(10)), "x.ledger:10: expected a header"));
    CHECK(absl::StrContains(MessageOf({}), "x.ledger:0: expected a header"));
  }
  SECTION("a header of zeros") {
    CHECK(absl::StrContains(MessageOf(std::vector<std::byte>(8192)), "died before it could write the header"));
  }
}

TEST_CASE("slots that were reserved and never committed are counted") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 512);
  ledger.AddUncommitted();
  ledger.Free(0, 0x1000);
  const auto file = ledger.Read();
  REQUIRE(file.ok());
  CHECK(file->counts().uncommitted == 1);
  CHECK(file->counts().committed == ledger.slots() - 1);
}

TEST_CASE("slots beyond the end of the file are counted, and preallocated ones are no slots") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 512);
  ledger.header().reserved = ledger.slots() + 3;
  CHECK(ledger.Read()->counts().cut_off == 3);
  ledger.header().reserved = ledger.slots();
  auto bytes = ledger.Bytes();
  bytes.resize(bytes.size() + 10 * record::kRecordBytes);
  const auto file = LedgerFile::FromBytes(bytes, "x");
  CHECK(file->slots().size() == ledger.slots());
  CHECK(file->counts().uncommitted == 0);
}

TEST_CASE("committed slots behind a header that was not written back are read") {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 512);
  ledger.Free(0, 0x1000);
  ledger.header().reserved = 1;
  CHECK(ledger.Read()->slots().size() == ledger.slots());
}

TEST_CASE("kinds of a newer recorder are skipped and counted") {
  TestLedger ledger;
  ledger.Add(static_cast<record::Kind>(999), 0, record::Range{});
  ledger.Alloc(0, 0x1000, 512);
  CHECK(ledger.Read()->counts().unknown_kind == 1);
}

TEST_CASE("texts are put together from chunks, in any order") {
  const std::string name(100, 'n');
  TestLedger ledger;
  const std::uint32_t id = ledger.Text(name);
  std::swap(ledger.At<record::TextChunk>(0), ledger.At<record::TextChunk>(2));
  CHECK(ledger.Read()->Text(id) == name);
  CHECK(ledger.Read()->Text(0).empty());
  CHECK(ledger.Read()->Text(77) == "<text 77>");
}

TEST_CASE("a text that lacks a chunk shows the hole, and is counted") {
  TestLedger ledger;
  const std::uint32_t id = ledger.Text(std::string(60, 'n'));
  ledger.At<record::TextChunk>(0).commit = {};
  ledger.At<record::TextChunk>(0).id = 0;
  const auto file = ledger.Read();
  CHECK(file->Text(id) == std::string(48, '?') + std::string(12, 'n'));
  CHECK(file->counts().incomplete_texts == 1);
}

TEST_CASE("definitions that contradict the format are refused, and counted") {
  TestLedger ledger;
  SECTION("an id that no file of this size could have") {
    ledger.Text("a");
    ledger.At<record::TextChunk>(0).id = 0xffffffff;
  }
  SECTION("a text longer than any") {
    ledger.Text("a");
    ledger.At<record::TextChunk>(0).total_bytes = 65535;
  }
  SECTION("a scope that is its own parent") {
    ledger.Scope(0, "a");
    ledger.At<record::ScopeDefinition>(1).parent = 1;
  }
  CHECK(ledger.Read()->counts().malformed == 1);
}

TEST_CASE("a scope's path names its parents") {
  TestLedger ledger;
  const std::uint32_t step = ledger.Scope(0, "step 3");
  const std::uint32_t forward = ledger.Scope(step, "forward");
  const auto file = ledger.Read();
  CHECK(file->ScopePath(forward) == "step 3/forward");
  CHECK(file->ScopePath(0).empty());
  CHECK(file->ScopePath(9) == "<scope 9>");
}

TEST_CASE("the last value of a setting counts") {
  TestLedger ledger;
  ledger.Setting("version.torch", "2.14");
  ledger.Setting("version.torch", "2.15");
  CHECK(ledger.Read()->SettingValue("version.torch") == "2.15");
  CHECK(ledger.Read()->SettingValue("version.driver").empty());
}

}  // namespace
}  // namespace ledger::format
