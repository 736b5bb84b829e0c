#include <catch2/catch.hpp>

#include "ledger/format/test_ledger.h"
#include "ledger/report/build.h"
#include "ledger/report/build_training.h"
#include "ledger/report/host_nodes.h"
#include "ledger/report/host_sheet.h"
#include "ledger/report/json.h"
#include "ledger/report/steps.h"
#include "ledger/report/text.h"
#include "ledger/report/text_training.h"
#include "nlohmann/json.hpp"

namespace ledger::report {
namespace {

using attribution::Category;
using attribution::Index;
using format::TestLedger;
using record::Memory;
using record::NameCategory;
using record::PhaseKind;

RankReport Report(const TestLedger& ledger) {
  const auto file = *ledger.Read();
  return BuildRank(replay::Analysis(file, {}), {});
}

void Enter(TestLedger& ledger, PhaseKind kind, std::uint64_t step) {
  record::Phase phase = {};
  phase.phase = kind;
  phase.step = step;
  ledger.Add(record::Kind::kPhase, record::kNoDevice, phase, record::Layer::kAgent);
}

void Name(TestLedger& ledger, std::int8_t device, std::uint64_t address, NameCategory category, std::uint64_t bytes,
          std::uint64_t elements) {
  record::Name name = {};
  name.address = address;
  name.bytes = bytes;
  name.elements = elements;
  name.element_bytes = 4;
  name.category = category;
  name.text = ledger.Text("layer.weight");
  if (category == NameCategory::kOptimizerState) name.key = ledger.Text("exp_avg");
  ledger.Add(record::Kind::kName, device, name, record::Layer::kAgent);
}

RankReport RankOf(int rank, const std::vector<attribution::StateTensor>& tensors, std::uint64_t held) {
  RankReport report;
  report.rank = rank;
  report.model_state.tensors = tensors;
  report.model_state.held[Index(Category::kParameter)] = held;
  return report;
}

TEST_CASE("who held the memory when it ran out, and until when") {
  TestLedger ledger;
  const std::uint32_t big = ledger.Scope(0, "big"), small = ledger.Scope(0, "small");
  ledger.BlockAlloc(0, 0x1000, 512, big);
  ledger.BlockAlloc(0, 0x2000, 512, big);
  ledger.BlockAlloc(0, 0x3000, 512, small);
  ledger.BlockOom(0, 5000, 0, 1000);
  const std::uint64_t freed = ledger.slots();
  ledger.BlockFree(0, 0x3000, 512);
  ledger.BlockFree(0, 0x1000, 512);
  ledger.BlockAlloc(0, 0x1000, 512, big);  // not one of those

  const auto file = *ledger.Read();
  const RankReport rank = Report(ledger);
  REQUIRE(rank.ooms.size() == 1);
  const OomReport& oom = rank.ooms[0];
  REQUIRE(oom.holders.size() >= 2);
  CHECK(oom.holder_count == oom.holders.size());
  CHECK(oom.held_at_end == 512);
  std::uint64_t bytes = 0, held = 0;
  for (const HolderReport& holder : oom.holders) {
    bytes += holder.bytes;
    held += holder.held_at_end;
    if (holder.scope == "small") {
      CHECK(holder.held_at_end == 0);
      CHECK(holder.until_ns == file.TimeAt(freed));
    }
    if (holder.held_at_end != 0) CHECK(holder.until_ns == -1);
  }
  CHECK(bytes == 3 * 512);
  CHECK(held == 512);
}

PhaseReport Phase(const std::string& name, std::uint64_t step, std::uint64_t peak, Category category) {
  PhaseReport phase;
  phase.name = name;
  phase.step = step;
  phase.in_step = name != "between steps";
  phase.peak_bytes = phase.at_peak[Index(category)] = peak;
  phase.end_bytes = peak / 2;
  return phase;
}

TEST_CASE("the first step is compared with the highest later one") {
  RankReport rank;
  rank.phases = {Phase("forward", 0, 100, Category::kSavedActivation), Phase("optimizer", 0, 300, Category::kTemporary),
                 Phase("forward", 1, 200, Category::kSavedActivation),
                 Phase("between steps", 1, 50, Category::kParameter),
                 Phase("forward", 2, 500, Category::kOptimizerState)};
  const auto steps = StepsOf(rank);
  REQUIRE(steps.size() == 3);
  CHECK(steps[0].peak_phase == "optimizer");
  CHECK(steps[1].end_bytes == 25);
  const auto change = AfterFirstStep(steps);
  REQUIRE(change.has_value());
  CHECK(change->to == 2);
  CHECK(change->bytes == 200);
  REQUIRE(change->categories.size() == 2);
  CHECK(change->categories[0] == std::pair(Category::kOptimizerState, std::int64_t{500}));
  CHECK(change->categories[1] == std::pair(Category::kTemporary, std::int64_t{-300}));
}

TEST_CASE("a peak that rises with every step is told from one that has settled") {
  RankReport rising, settled;
  for (std::uint64_t step = 0; step < 8; ++step) {
    rising.phases.push_back(Phase("backward", step, 100 + 10 * step, Category::kTemporary));
    settled.phases.push_back(Phase("backward", step, step < 6 ? 100 + 10 * step : 160, Category::kTemporary));
  }
  const auto rise = SteadyRise(StepsOf(rising));
  REQUIRE(rise.has_value());
  CHECK(rise->from == 4);
  CHECK(rise->to == 7);
  CHECK(rise->bytes == 30);
  CHECK_FALSE(SteadyRise(StepsOf(settled)).has_value());
  rising.phases.resize(3);
  CHECK_FALSE(SteadyRise(StepsOf(rising)).has_value());
}

TEST_CASE("a model is put together from its ranks: what is named alike is one tensor") {
  const attribution::StateTensor weight{Category::kParameter, "weight", "", 1000, 2};
  const attribution::StateTensor first{Category::kOptimizerState, "weight", "exp_avg", 1000, 4};
  const attribution::StateTensor other{Category::kParameter, "other", "", 1000, 2};
  const ModelSummary model =
      SummarizeModel({RankOf(0, {weight, first}, 2000), RankOf(1, {weight}, 2000), RankOf(2, {other}, 500)});
  CHECK(model.parameters == 2000);
  CHECK(model.Bytes(Category::kParameter) == 4000);
  CHECK(model.Bytes(Category::kOptimizerState) == 4000);
  CHECK(model.bytes == 8000);
  CHECK(model.held == 4500);
  CHECK(model.PerParameter(model.bytes) == 4);
  REQUIRE(model.widths.size() == 2);
  CHECK(model.widths[1].key == "exp_avg");
}

TEST_CASE("host memory has accounts by kind and owner, which add up to its maximum") {
  TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 512);
  const auto host = [&](std::uint64_t address, std::uint64_t bytes, absl::string_view owner, Memory memory) {
    ledger.Alloc(record::kNoDevice, address, bytes, {.owner = owner, .call = "cudaHostAlloc", .memory = memory});
  };
  host(0x10000, 4096, "libtorch_cuda.so", Memory::kHost);
  host(0x20000, 8192, "libtorch_cuda.so", Memory::kHost);
  host(0x30000, 1024, "libmine.so", Memory::kHostRegistered);
  Name(ledger, record::kNoDevice, 0x10000, NameCategory::kOptimizerState, 3000, 750);
  Name(ledger, record::kNoDevice, 0x20000, NameCategory::kOptimizerState, 5000, 1250);
  ledger.Free(record::kNoDevice, 0x20000, Memory::kHost);
  host(0x40000, 2048, "libtorch_cuda.so", Memory::kHost);

  const auto file = *ledger.Read();
  const HostSheetReport sheet = BuildHostSheet(file);
  CHECK(sheet.bytes == 4096 + 8192 + 1024);
  REQUIRE(sheet.accounts.size() == 2);
  CHECK(sheet.accounts[0].name == "pinned by libtorch_cuda.so");
  CHECK(sheet.accounts[0].bytes == 4096 + 8192);
  CHECK(sheet.accounts[0].allocations == 2);
  CHECK(sheet.accounts[0].requested == 8000);
  CHECK(sheet.accounts[1].name == "registered by libmine.so");
  CHECK_FALSE(sheet.accounts[1].requested.has_value());
}

TEST_CASE("a name of host memory is one of what lives there when it is said") {
  TestLedger ledger;
  ledger.BlockAlloc(0, 0x1000, 512);
  const auto host = [&](std::uint64_t bytes) {
    ledger.Alloc(record::kNoDevice, 0x10000, bytes,
                 {.owner = "libtorch_cuda.so", .call = "cudaHostAlloc", .memory = Memory::kHost});
  };
  const auto name = [&] { Name(ledger, record::kNoDevice, 0x10000, NameCategory::kOptimizerState, 3000, 750); };
  const auto requested = [&] {
    const auto file = *ledger.Read();
    const HostSheetReport sheet = BuildHostSheet(file);
    REQUIRE(sheet.accounts.size() == 1);
    return sheet.accounts[0].requested;
  };
  host(4096);
  SECTION("of its own") {
    name();
    CHECK(requested() == 3000);
  }
  SECTION("said when a free had failed") {
    ledger.Free(record::kNoDevice, 0x10000, Memory::kHost);
    ledger.FreeFailed(record::kNoDevice, 0x10000, Memory::kHost);
    name();
    CHECK(requested() == 3000);
  }
  SECTION("not of what lay at the address before") {
    name();
    ledger.Free(record::kNoDevice, 0x10000, Memory::kHost);
    host(8192);
    CHECK_FALSE(requested().has_value());
  }
  SECTION("not of what lies there afterwards") {
    ledger.Free(record::kNoDevice, 0x10000, Memory::kHost);
    host(2048);
    name();
    CHECK_FALSE(requested().has_value());
  }
  SECTION("nor said too late") {
    ledger.Free(record::kNoDevice, 0x10000, Memory::kHost);
    name();
    CHECK_FALSE(requested().has_value());
  }
}

TEST_CASE("host memory is summed for each node") {
  RunReport run;
  for (const char* const host : {"a", "b", "a"}) {
    RankReport& rank = run.ranks.emplace_back();
    rank.host = host;
    rank.host_sheet.pinned_peak = 100;
    rank.host_sheet.sheet.bytes = 130;
  }
  const auto nodes = HostNodesOf(run);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].host == "a");
  CHECK(nodes[0].ranks == 2);
  CHECK(nodes[0].sum.pinned_peak == 200);
  CHECK(nodes[0].sum.sheet.bytes == 260);
}

// A parameter of 2,000 elements, of which this rank has a half, with one kind of state, after one all-gather.
TestLedger ShardedRank() {
  TestLedger ledger;
  ledger.Communicator(0, 0xc0, "default_pg", 2);
  ledger.BlockAlloc(0, 0x10000, 4096);
  Name(ledger, 0, 0x10000, NameCategory::kParameter, 4000, 2000);
  Enter(ledger, PhaseKind::kForward, 0);
  ledger.BlockAlloc(0, 0x20000, 8192);
  record::Collective call = {};
  call.operation = record::Operation::kAllGather;
  call.send = 0x10000;
  call.receive = 0x20000;
  call.count = 1000;
  call.element_bytes = 4;
  call.communicator = 0xc0;
  ledger.Add(record::Kind::kCollective, 0, call, record::Layer::kNccl);
  ledger.BlockFree(0, 0x20000, 8192);
  Enter(ledger, PhaseKind::kOptimizer, 0);
  ledger.BlockAlloc(0, 0x30000, 4096);
  Name(ledger, 0, 0x30000, NameCategory::kOptimizerState, 4000, 2000);
  Enter(ledger, PhaseKind::kForward, 1);
  return ledger;
}

TEST_CASE("the JSON report has communication, gathered parameters and the model's state") {
  const auto json = nlohmann::json::parse(ToJson(BuildRun({Report(ShardedRank())}), {}));
  const auto& rank = json["ranks"][0];
  REQUIRE(rank["communication"].size() == 1);
  const auto& call = rank["communication"][0];
  CHECK(call["step"] == 0);
  CHECK(call["operation"] == "all_gather");
  CHECK(call["count"] == 1);
  CHECK(call["payload_bytes"] == 8000);
  CHECK(call["buffer_bytes"] == 4096 + 8192);
  CHECK(call["wire_bytes"] == 4000);
  CHECK(call["calls_of"].empty());
  REQUIRE(rank["communicators"].size() == 1);
  CHECK(rank["communicators"][0]["communicator"] == call["communicator"]);
  CHECK(rank["communicators"][0]["nccl_name"] == "default_pg");
  CHECK_FALSE(rank["communicators"][0].contains("process_group"));
  CHECK(rank["gathered"]["largest"]["gathered_bytes"] == 8192);
  CHECK(rank["model_state"]["held_bytes"] == 8000);
  CHECK(rank["model_state"]["shard_factor"] == 2.0);
  CHECK(rank["model_state"]["categories"]["parameter"]["bytes_per_parameter"] == 2.0);
  CHECK(json["summary"]["model_state"]["parameters"] == 2000);
  CHECK(json["summary"]["model_state"]["bytes_per_parameter"] == 8.0);
  CHECK(json["summary"]["model_state"]["categories"]["optimizer_state"]["keys"]["exp_avg"]["bytes"] == 8000);
  CHECK(rank["model_state"]["persistent_bytes_at_peak"].get<int>() +
            rank["model_state"]["transient_bytes_at_peak"].get<int>() ==
        rank["at_peak"]["bytes"].get<int>());
}

TEST_CASE("the text says how many bytes a parameter takes, and what of them is here") {
  const RunReport run = BuildRun({Report(ShardedRank())});
  const std::string text = ModelStateText(run, run.ranks[0]);
  CHECK(text.find("8.0 bytes per parameter: parameter 4, optimizer_state 4 (exp_avg 4); 2,000 parameters") !=
        std::string::npos);
  CHECK(text.find("parameter 1 in 2, optimizer_state 1 in 2") != std::string::npos);
  CHECK(CommunicationText(run.ranks[0]).find("all_gather") != std::string::npos);
  CHECK(GatheredText(run.ranks[0]).find("gathered parameters") != std::string::npos);
}

TEST_CASE("what grows, rises and stays gathered is said in capitals") {
  RankReport rank;
  for (std::uint64_t step = 0; step < 8; ++step) {
    rank.phases.push_back(Phase("backward", step, (100 + 10 * step) << 20, Category::kTemporary));
  }
  attribution::Growth growth;
  growth.category = Category::kTemporary;
  growth.member = "head: aten::mm";
  growth.evaluation = true;
  growth.rounds = 3;
  growth.grown_bytes = 3 * (std::uint64_t{125} << 19);
  growth.grown_blocks = 3;
  rank.growth.push_back(growth);
  rank.gathered.largest.use.whole = 1;
  rank.gathered.held.push_back({"", std::uint64_t{1} << 30, 3, 2, 5, 0, -1});
  CHECK(StepsText(rank).find("STILL RISING: the peak of each step from 4 to 7 is above the one before, by 10.0 MiB") !=
        std::string::npos);
  CHECK(
      StepsText(rank).find("GROWING with every evaluation: temporary, head: aten::mm, by 62.5 MiB and 1 block each") !=
      std::string::npos);
  CHECK(GatheredText(rank).find("STAYS GATHERED between passes: the root, 1.000 GiB in 3 blocks") != std::string::npos);
}

TEST_CASE("where the framework said it, communicators and buffers are named after their process group") {
  TestLedger ledger = ShardedRank();
  ledger.ProcessGroup(0xc0, "0", "mesh_shard", 2, 1, 4);
  const RankReport rank = Report(ledger);
  const auto json = nlohmann::json::parse(ToJson(BuildRun({rank}), {.blocks = true}))["ranks"][0];
  CHECK(json["communication"][0]["communicator"] == "communicator 0 \"mesh_shard\", 2 ranks");
  const auto& communicator = json["communicators"][0];
  CHECK(communicator["communicator"] == json["communication"][0]["communicator"]);
  CHECK(communicator["nccl_name"] == "default_pg");
  CHECK(communicator["process_group"] == nlohmann::json{{"name", "0"},
                                                        {"description", "mesh_shard"},
                                                        {"ranks", 2},
                                                        {"rank", 0},
                                                        {"first_rank", 1},
                                                        {"rank_stride", 4}});
  const auto& buffers = json["at_peak"]["categories"]["comm_buffer"]["members"];
  REQUIRE(buffers.size() == 1);
  CHECK(buffers[0]["name"] == "outside of any range (all-gather output, mesh_shard)");
  for (const auto& block : json["at_peak"]["blocks"]) {
    CHECK(block["process_group"] == (block["category"] == "comm_buffer" ? "mesh_shard" : ""));
  }
  CHECK(CommunicationText(rank).find("communicator 0 \"mesh_shard\", 2 ranks: 1-5 by 4\n") != std::string::npos);
}

TEST_CASE("a row says what NCCL's operations were for, where that is something else") {
  RankReport rank;
  attribution::Communication sends;
  sends.operation = record::Operation::kSend;
  sends.communicator = "communicator 0";
  sends.calls_of = {{"send", 1}, {"all_to_all_v_single", 6}};
  attribution::Communication receives = sends;
  receives.operation = record::Operation::kReceive;
  receives.calls_of = {{"recv", 1}, {"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}};
  attribution::Communication gathers = sends;
  gathers.operation = record::Operation::kAllGather;
  gathers.calls_of = {{"allGatherSingleImpl", 1}, {"_allgather_base", 2}};
  rank.communication = {sends, receives, gathers};
  const std::string text = CommunicationText(rank);
  CHECK(text.find("communicator 0; for all_to_all_v_single\n") != std::string::npos);
  CHECK(text.find("communicator 0; for a, b, c, ...\n") != std::string::npos);
  CHECK(text.find("communicator 0\n") != std::string::npos);
}

}  // namespace
}  // namespace ledger::report
