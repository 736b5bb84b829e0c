#include "ledger/report/build.h"

#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"
#include "ledger/report/compare_ranks.h"
#include "ledger/report/json.h"
#include "ledger/report/sample_run.h"
#include "ledger/report/text.h"
#include "nlohmann/json.hpp"

namespace ledger::report {
namespace {

RankReport Report(const format::TestLedger& ledger) {
  const auto file = *ledger.Read();
  return BuildRank(replay::Analysis(file, {}), {});
}

RunReport SampleReport() {
  std::vector<RankReport> ranks;
  for (int rank = kSampleRanks; rank-- > 0;) ranks.push_back(Report(SampleRank(rank)));
  return BuildRun(std::move(ranks));
}

TEST_CASE("ranks are in order and share one axis of time") {
  const RunReport run = SampleReport();
  REQUIRE(run.ranks.size() == 2);
  CHECK(run.ranks[0].rank == 0);
  // Rank 1 opened its ledger a millisecond later.
  CHECK(run.ranks[1].devices[0].peaks.allocated.time_ns - run.ranks[0].devices[0].peaks.allocated.time_ns == 1'000'000);
  CHECK(run.exact());
  CHECK(run.simulated());
  CHECK(run.identities_hold());
}

TEST_CASE("the highest rank is named, with what makes the difference") {
  const RankComparison comparison = CompareAllocated(SampleReport());
  CHECK(comparison.highest == 1);
  CHECK(comparison.lowest == 0);
  REQUIRE(comparison.differences.size() == 1);
  CHECK(comparison.differences[0].what == "step 0/forward");
  CHECK(comparison.differences[0].bytes == 64 << 20);
}

TEST_CASE("every kind of loss is in the report") {
  format::TestLedger ledger;
  ledger.header().losses[static_cast<std::size_t>(record::Loss::kDiskFull)] = 3;
  ledger.AddUncommitted();
  ledger.BlockFree(0, 0x1000, 512);
  const RankReport rank = Report(ledger);
  CHECK_FALSE(rank.exact());
  REQUIRE(rank.losses.size() == 3);
  CHECK(rank.losses[0].reason == "disk_full");
  CHECK(rank.losses[0].count == 3);
  CHECK(rank.losses[1].reason == "uncommitted");
  CHECK(rank.losses[2].reason == "unknown_block_free");
}

TEST_CASE("when the allocator gave up, what the device had comes from the sample that was taken for it") {
  format::TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 512);
  ledger.BlockOom(0, 1 << 20, 0, 0);
  record::DeviceSample sample = {};
  sample.free_bytes = 300;
  sample.total_bytes = 1000;
  sample.why = ledger.Text("cudaFree");
  ledger.Add(record::Kind::kDeviceSample, 0, sample);
  sample.free_bytes = 200;
  sample.why = ledger.Text(record::kSampledOutOfMemory);
  ledger.Add(record::Kind::kDeviceSample, 0, sample);
  ledger.BlockOom(0, 1 << 20, 0, 0);
  const RankReport rank = Report(ledger);
  REQUIRE(rank.ooms.size() == 2);
  CHECK(rank.ooms[0].device_free == 200);
  CHECK(rank.ooms[0].device_total == 1000);
  CHECK(rank.ooms[1].device_total == 0);
}

// Three blocks on device 1, one on device 0; at its peak, which is the lower one, device 0 has a parameter.
format::TestLedger TwoDevices() {
  format::TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 1 << 20);
  record::Name name = {};
  name.address = 0x1000;
  name.text = ledger.Text("stage0.weight");
  name.category = record::NameCategory::kParameter;
  ledger.Add(record::Kind::kName, 0, name, record::Layer::kAgent);
  ledger.BlockAlloc(1, 0x100000, 4 << 20);
  ledger.BlockAlloc(1, 0x900000, 2 << 20);
  name.address = 0x900000;
  name.text = ledger.Text("stage1.weight");
  ledger.Add(record::Kind::kName, 1, name, record::Layer::kAgent);
  ledger.BlockFree(1, 0x100000, 4 << 20);
  ledger.Mark("later");
  ledger.BlockAlloc(1, 0x100000, 1 << 20);
  return ledger;
}

std::uint64_t Parameters(const InstantReport& instant) {
  return instant.categories[attribution::Index(attribution::Category::kParameter)].bytes;
}

TEST_CASE("every device of a process has its blocks by category") {
  const RankReport rank = Report(TwoDevices());
  REQUIRE(rank.devices.size() == 2);
  CHECK(rank.main_device()->device == 1);
  CHECK(&rank.at_peak() == &rank.devices[1].at_peak);
  CHECK(rank.devices[0].at_peak.bytes == 1 << 20);
  CHECK(Parameters(rank.devices[0].at_peak) == 1 << 20);
  CHECK(rank.devices[1].at_peak.bytes == 6 << 20);
  CHECK(Parameters(rank.devices[1].at_peak) == 2 << 20);
  const replay::Identity& identity = rank.identities.back();
  CHECK(identity.name == "categories_sum");
  CHECK(identity.holds);
  CHECK(identity.detail.find("device 0: categories of 1 live blocks 1048576, allocated peak 1048576; device 1: ") == 0);

  const auto json = nlohmann::json::parse(ToJson(BuildRun({rank}), {true}));
  const auto& devices = json["ranks"][0]["devices"];
  CHECK(devices[0]["at_peak"]["categories"]["parameter"]["bytes"] == 1 << 20);
  CHECK(devices[0]["at_peak"]["blocks"][0]["name"] == "stage0.weight");
  CHECK(devices[1]["at_peak"] == json["ranks"][0]["at_peak"]);
}

TEST_CASE("the device that is described in full can be chosen, and so can the instant of each") {
  const auto file = *TwoDevices().Read();
  BuildOptions options;
  options.device = 0;
  options.at = *ParseInstant("mark:later");
  const RankReport rank = BuildRank(replay::Analysis(file, {}), options);
  CHECK(rank.main_device()->device == 0);
  CHECK(rank.at_peak().device == 0);
  CHECK(rank.devices[0].at.bytes == 1 << 20);
  CHECK(rank.devices[1].at.bytes == 2 << 20);
  options.device = 7;
  CHECK(BuildRank(replay::Analysis(file, {}), options).main_device()->device == 1);
  const std::string text = ToText(BuildRun({rank}), {});
  CHECK(text.find("Who held it: rank 0, device 0, at mark:later") != std::string::npos);
  CHECK(text.find("Other devices of rank 0, each at mark:later") != std::string::npos);
  CHECK(text.find("setup: parameter 0.002") != std::string::npos);
}

TEST_CASE("names that are no UTF-8 do not keep JSON from being JSON") {
  format::TestLedger ledger;
  const std::uint32_t scope = ledger.Scope(0, "\xff\xfe\x01");
  ledger.BlockAlloc(0, 0x1000, 512, scope);
  const std::string json = ToJson(BuildRun({Report(ledger)}), {});
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  REQUIRE_FALSE(parsed.is_discarded());
  CHECK(parsed["ranks"][0]["peaks"]["allocated"]["bytes"] == 512);
}

TEST_CASE("a run without any device event is a report, too") {
  const RunReport run = BuildRun({Report(format::TestLedger())});
  const auto parsed = nlohmann::json::parse(ToJson(run, {}), nullptr, false);
  CHECK(parsed["ranks"][0]["peaks"]["allocated"]["bytes"] == 0);
  CHECK(parsed["ranks"][0]["main_device"] == -1);
  CHECK(run.identities_hold());
}

}  // namespace
}  // namespace ledger::report
