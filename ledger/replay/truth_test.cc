#include "ledger/replay/truth.h"

#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"

namespace ledger::replay {
namespace {

using format::TestLedger;

TestLedger MakeLedger() {
  TestLedger ledger;
  ledger.Alloc(0, 0x1000, 4096);
  ledger.BlockAlloc(0, 0x1000, 512, 0, 500);
  ledger.BlockAlloc(0, 0x1200, 1024);
  ledger.Mark("middle");
  ledger.BlockFree(0, 0x1000, 512);
  ledger.Mark("end");
  return ledger;
}

std::vector<Identity> Check(const std::string& json) {
  const auto truth = ParseTruth(json, "t.json");
  REQUIRE(truth.ok());
  const auto file = *MakeLedger().Read();
  const Analysis analysis(file, OptionsFor(file, *truth));
  return CheckTruth(analysis, *truth);
}

TEST_CASE("torch's figures per window, exactly") {
  auto identities = Check(R"({"windows": [
    {"from": null, "to": "middle", "device": 0, "max_allocated": 1536, "max_reserved": 4096, "allocated": 1536, "reserved": 4096},
    {"from": "middle", "to": "end", "device": 0, "max_allocated": 1536, "allocated": 1024}]})");
  REQUIRE(identities.size() == 1);
  CHECK(identities[0].name == kWindowIdentity);
  CHECK(identities[0].holds);
  identities = Check(R"({"windows": [{"from": "middle", "to": "end", "device": 0, "max_allocated": 1537}]})");
  CHECK_FALSE(identities[0].holds);
  CHECK(identities[0].detail.find("torch says 1537, replayed 1536 (-1)") != std::string::npos);
  identities = Check(R"({"windows": [{"from": "nowhere", "to": "end", "device": 0, "max_allocated": 1536}]})");
  CHECK_FALSE(identities[0].holds);
  identities = Check(R"({"windows": [{"from": "end", "to": "middle", "device": 0, "max_allocated": 1536}]})");
  CHECK_FALSE(identities[0].holds);
  identities = Check(R"({"windows": [{"from": null, "to": null, "device": 1, "max_allocated": 1}]})");
  CHECK_FALSE(identities[0].holds);
}

TEST_CASE("the blocks of torch's snapshot, each") {
  const std::string head = R"({"snapshots": [{"mark": "middle", "device": 0, "blocks": [)";
  const std::string first = R"({"address": 4096, "size": 512, "requested": 500, "state": "active_allocated"})";
  const std::string second = R"({"address": 4608, "size": 1024, "requested": 1000, "state": "active_allocated"})";
  const std::string pending = R"({"address": 8192, "size": 512, "requested": 500, "state": "active_pending_free"})";
  const std::string segments = R"(], "segments": [{"address": 4096, "size": 4096}]}]})";
  CHECK(Check(head + first + "," + second + "," + pending + segments)[0].holds);
  CHECK_FALSE(Check(head + first + segments)[0].holds);
  CHECK_FALSE(Check(head + second + segments)[0].holds);
  CHECK_FALSE(Check(head + first + "," + second + R"(], "segments": []}]})")[0].holds);
  CHECK(Check(head + first + "," + second + "]}]}")[0].holds);
  const std::string other_size = R"({"address": 4096, "size": 1024})";
  CHECK_FALSE(Check(head + other_size + "," + second + segments)[0].holds);
  const std::string other_request = R"({"address": 4096, "size": 512, "requested": 501})";
  CHECK_FALSE(Check(head + other_request + "," + second + segments)[0].holds);
  CHECK_FALSE(Check(R"({"snapshots": [{"mark": "nowhere", "device": 0, "blocks": []}]})")[0].holds);
}

TEST_CASE("a truth file that is none is refused with the reason") {
  CHECK_FALSE(ParseTruth("", "t.json").ok());
  CHECK_FALSE(ParseTruth("[]", "t.json").ok());
  CHECK_FALSE(ParseTruth(R"({"windows": [3]})", "t.json").ok());
  CHECK_FALSE(ParseTruth(R"({"snapshots": [{"device": 0}]})", "t.json").ok());
  CHECK_FALSE(ParseTruth(R"({"snapshots": [{"mark": "a", "blocks": [{"address": -1, "size": 3}]}]})", "t.json").ok());
  CHECK(ParseTruth("{}", "t.json").ok());
  CHECK_FALSE(ReadTruth("/no/such/file").ok());
}

}  // namespace
}  // namespace ledger::replay
