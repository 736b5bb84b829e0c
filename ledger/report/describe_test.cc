#include "ledger/report/describe.h"

#include <catch2/catch.hpp>

#include "ledger/format/names.h"
#include "ledger/report/sample_run.h"
#include "nlohmann/json.hpp"

namespace ledger::report {
namespace {

TEST_CASE("every record of the sample is one line of JSON with its kind") {
  const auto file = *SampleRank(1).Read();
  for (std::uint64_t i = 0; i < file.slots().size(); ++i) {
    const auto json = nlohmann::json::parse(DescribeJson(file, i), nullptr, false);
    REQUIRE(json.is_object());
    CHECK(json["record"] == i);
    CHECK(json["kind"] == std::string(format::KindName(file.slots()[i].kind())));
    CHECK(DescribeText(file, i).find('\n') == std::string::npos);
  }
}

TEST_CASE("a block says what the allocator said") {
  format::TestLedger ledger;
  const std::uint32_t scope = ledger.Scope(0, "a \"quoted\"\nname");
  ledger.BlockAlloc(2, 0xabc000, 1024, scope, 1000);
  const auto file = *ledger.Read();
  const auto json = nlohmann::json::parse(DescribeJson(file, file.slots().size() - 1), nullptr, false);
  CHECK(json["kind"] == "block_alloc");
  CHECK(json["device"] == 2);
  CHECK(json["address"] == 0xabc000);
  CHECK(json["size"] == 1024);
  CHECK(json["requested"] == 1000);
  CHECK(json["allocated"] == 1024);
  CHECK(json["scope"] == "a \"quoted\"\nname");
  CHECK(DescribeText(file, file.slots().size() - 1).find("address=0xabc000") != std::string::npos);
}

TEST_CASE("every kind there can be is described") {
  for (unsigned kind = 1; kind < 256; ++kind) {
    format::TestLedger ledger;
    ledger.Add(static_cast<record::Kind>(kind), 0, record::Range{});
    const auto file = *ledger.Read();
    CHECK_FALSE(nlohmann::json::parse(DescribeJson(file, 0), nullptr, false).is_discarded());
  }
  format::TestLedger ledger;
  ledger.AddUncommitted();
  const auto file = *ledger.Read();
  CHECK(DescribeJson(file, 0) == "{\"record\": 0, \"kind\": \"uncommitted\"}");
}

}  // namespace
}  // namespace ledger::report
