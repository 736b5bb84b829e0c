// What the hooks of NVTX, NCCL, PyTorch's allocator and the public API leave in the ledger.
#include <catch2/catch.hpp>

#include "tests/programs/run_program.h"

namespace {

using namespace ledger;
using record::Kind;
using record::Loss;
using testing::Ledger;
using testing::Outcome;
using testing::Run;
using Variables = std::map<std::string, std::string>;

const std::string kPrograms = LEDGER_PROGRAMS;
const std::string kLibrary = LEDGER_LIBRARY;

Outcome Record(std::vector<std::string> command, Variables environment = {}) {
  environment.emplace("LD_PRELOAD", kLibrary);
  const Outcome outcome = Run(command, environment);
  INFO(outcome.errors);
  CHECK(outcome.status == 0);
  return outcome;
}

Outcome Nvtx(const std::string& scenario, Variables environment = {}) {
  return Record({kPrograms + "/nvtx_program", scenario, kPrograms + "/liblocal_client.so"}, std::move(environment));
}

const Ledger& Only(const Outcome& outcome) {
  REQUIRE(outcome.ledgers.size() == 1);
  return outcome.ledgers.front();
}

std::map<std::uint64_t, std::string> BlockPaths(const Ledger& ledger) {
  std::map<std::uint64_t, std::string> paths;
  for (const auto& block : ledger.All<record::Block>(Kind::kBlockAlloc))
    paths[block.address] = ledger.Path(block.scope);
  return paths;
}

TEST_CASE("Ranges of every client library are seen, whenever it started and however it was loaded") {
  const Outcome outcome = Nvtx("sources");
  const Ledger& ledger = Only(outcome);
  const std::map<std::uint64_t, std::string> expected = {
      {0x1000, "early/linked"}, {0x2000, "early/linked/local"}, {0x3000, "thread"}, {0x4000, ""}};
  CHECK(BlockPaths(ledger) == expected);
  CHECK(ledger.losses(Loss::kUnbalancedPop) == 0);
}

TEST_CASE("Ranges of each domain nest on their own; names come narrow, wide and registered") {
  const Outcome outcome = Nvtx("domains");
  const Ledger& ledger = Only(outcome);
  const std::map<std::uint64_t, std::string> expected = {{0x1000, ""},
                                                         {0x2000, "outer/io:load/io:保存/dépôt:text"},
                                                         {0x3000, "outer/dépôt:text"},
                                                         {0x4000, "outer/😀"},
                                                         {0x5000, ""}};
  CHECK(BlockPaths(ledger) == expected);
  std::map<std::string, std::int64_t> numbers;
  for (const auto& push : ledger.All<record::Range>(Kind::kRangePush)) {
    CHECK(push.commit.layer == record::Layer::kNvtx);
    numbers[ledger.Text(push.text)] = static_cast<std::int64_t>(push.payload);
  }
  CHECK(numbers ==
        std::map<std::string, std::int64_t>{{"outer", 0}, {"load", 42}, {"保存", -2}, {"text", 7}, {"😀", 0}});
  CHECK(ledger.All<record::Range>(Kind::kRangePop).size() == 5);
}

TEST_CASE("A pop without a push is counted, and takes nothing from other domains") {
  const Outcome outcome = Nvtx("unbalanced");
  const Ledger& ledger = Only(outcome);
  CHECK(ledger.losses(Loss::kUnbalancedPop) == 3);
  CHECK(BlockPaths(ledger).at(0x2000) == "still fine");
}

TEST_CASE("Nesting beyond all measure is counted, and what follows is right again") {
  const Outcome outcome = Nvtx("deep");
  const Ledger& ledger = Only(outcome);
  CHECK(ledger.losses(Loss::kRangeDepth) > 0);
  CHECK(ledger.losses(Loss::kUnbalancedPop) == 0);
  CHECK(BlockPaths(ledger).at(0x2000) == "flat again");
}

TEST_CASE("Process-wide ranges have ids of their own, and may end on another thread") {
  const Outcome outcome = Nvtx("start-end");
  const Ledger& ledger = Only(outcome);
  const auto starts = ledger.All<record::Range>(Kind::kRangeStart);
  const auto ends = ledger.All<record::Range>(Kind::kRangeEnd);
  REQUIRE(starts.size() == 4);
  REQUIRE(ends.size() == 4);
  const char* const names[] = {"one", "two", "three", "four"};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(ledger.Text(starts[i].text) == names[i]);
    CHECK(ledger.Text(starts[i].domain) == (i == 2 ? "io" : ""));
    CHECK(ends[i].id == starts[i].id);
  }
  CHECK(ends[0].commit.thread != starts[0].commit.thread);
  const auto marks = ledger.All<record::Range>(Kind::kMark);
  REQUIRE(marks.size() == 2);
  CHECK(ledger.Text(marks[0].text) == "instant");
  CHECK(ledger.Path(marks[0].scope) == "here");
  CHECK(ledger.Text(marks[1].domain) == "io");
  CHECK(marks[1].payload == 99);
}

TEST_CASE("What NCCL says about its operations is understood") {
  const Outcome outcome = Nvtx("nccl");
  const auto pushes = Only(outcome).All<record::Range>(Kind::kRangePush);
  REQUIRE(pushes.size() == 3);
  CHECK(pushes[0].payload == 4096);
  CHECK(pushes[1].payload == 0xC0);
  CHECK(pushes[2].payload == 0);
}

TEST_CASE("The numbers of PyTorch's ranges do not make a name of each") {
  const Outcome outcome = Nvtx("ops");
  const Ledger& ledger = Only(outcome);
  CHECK(BlockPaths(ledger).at(0x2000) == "aten::mul/aten::mul/one, two");
  const auto pushes = ledger.All<record::Range>(Kind::kRangePush);
  REQUIRE(pushes.size() == 3);
  CHECK(pushes[0].payload == 12);
  CHECK(pushes[1].payload == 0);
}

TEST_CASE("A tool that had the variable first is served as without us") {
  const std::vector<std::string> command = {kPrograms + "/nvtx_program", "tool", kPrograms + "/liblocal_client.so"};
  Variables environment = {{"NVTX_INJECTION64_PATH", kPrograms + "/libnvtx_other_tool.so"}};
  SECTION("one that attaches itself") {
    const Outcome alone = Run(command, environment);
    CHECK(alone.output.find("tool: push registered in tooled") != std::string::npos);
    const Outcome together = Record(command, environment);
    CHECK(together.output == alone.output);
    CHECK(BlockPaths(Only(together)).at(0x1000) == "early/a/tooled:registered/tooled:not the tool's");
    CHECK(BlockPaths(Only(together)).at(0x2000) == "early");
    const auto ends = Only(together).All<record::Range>(Kind::kRangeEnd);
    REQUIRE(ends.size() == 2);
    CHECK(ends[0].id == 77);
    CHECK(ends[1].id >> 63 == 1);
  }
  SECTION("one that fails") {
    environment["OTHER_TOOL_FAILS"] = "1";
    const Outcome alone = Run(command, environment);
    const Outcome together = Record(command, environment);
    CHECK(alone.output.find("tool:") == std::string::npos);
    CHECK(together.output.find("tool:") == std::string::npos);
    CHECK(BlockPaths(Only(together)).at(0x2000) == "early");
  }
  SECTION("one that does not exist") {
    environment["NVTX_INJECTION64_PATH"] = kPrograms + "/no_such_tool.so";
    const Outcome together = Record(command, environment);
    CHECK(BlockPaths(Only(together)).at(0x2000) == "early");
  }
}

TEST_CASE("A child that lost LD_PRELOAD keeps the variable, and nothing happens to it") {
  const std::string program = kPrograms + "/nvtx_program";
  const std::vector<std::string> command = {"env",   "-u",   "LD_PRELOAD",
                                            program, "tool", kPrograms + "/liblocal_client.so"};
  SECTION("no other tool: as if there were none") {
    const Outcome outcome = Record(command);
    CHECK(outcome.ledgers.empty());
    CHECK(outcome.output == "push -2\nid 0\n");
  }
  SECTION("another tool: the child is its") {
    const Variables tool = {{"NVTX_INJECTION64_PATH", kPrograms + "/libnvtx_other_tool.so"}};
    const Outcome alone = Run(command, tool);
    const Outcome together = Record(command, tool);
    CHECK(together.ledgers.empty());
    CHECK(together.output == alone.output);
    CHECK(together.output.find("tool: push registered in tooled") != std::string::npos);
  }
}

TEST_CASE("A child with LD_PRELOAD is recorded, and the other tool is served in it as well") {
  const std::string program = kPrograms + "/nvtx_program";
  const Variables tool = {{"NVTX_INJECTION64_PATH", kPrograms + "/libnvtx_other_tool.so"}};
  const std::vector<std::string> command = {"env", program, "tool", kPrograms + "/liblocal_client.so"};
  const Outcome alone = Run(command, tool);
  const Outcome together = Record(command, tool);
  CHECK(together.output == alone.output);
  CHECK(BlockPaths(Only(together)).at(0x2000) == "early");
}

TEST_CASE("Switched off, the ledger leaves NVTX alone") {
  const Outcome outcome = Nvtx("tool", {{"LEDGER_OFF", "1"}});
  CHECK(outcome.ledgers.empty());
  CHECK(outcome.output == "push -2\nid 0\n");
}

TEST_CASE("The library finds its own path when it was given a relative one among others") {
  const std::string name = std::filesystem::path(kLibrary).filename();
  const std::string folder = std::filesystem::path(kLibrary).parent_path();
  const Outcome outcome = Record({"sh", "-c", "cd / && exec \"$0\" sources \"$1\"", kPrograms + "/nvtx_program",
                                  kPrograms + "/liblocal_client.so"},
                                 {{"LD_PRELOAD", "libdl.so.2:" + name}, {"LD_LIBRARY_PATH", folder}});
  CHECK(BlockPaths(Only(outcome)).at(0x2000) == "early/linked/local");
}

TEST_CASE("Ranges by way of a library are seen once") {
  const std::string program = GENERATE("/toolsext_attached", "/toolsext_alone");
  const Outcome outcome = Record({kPrograms + program});
  CHECK(outcome.output == "0 1 1 1\n");
  const Ledger& ledger = Only(outcome);
  CHECK(BlockPaths(ledger).at(0x2000) == "outer/innér");
  CHECK(ledger.All<record::Range>(Kind::kRangePush).size() == 2);
  CHECK(ledger.All<record::Range>(Kind::kRangePop).size() == 2);
  CHECK(ledger.All<record::Range>(Kind::kMark).size() == 1);
  CHECK(ledger.All<record::Range>(Kind::kRangeStart).size() == 1);
  CHECK(ledger.All<record::Range>(Kind::kRangeEnd).size() == 1);
  CHECK(ledger.losses(Loss::kUnbalancedPop) == 0);
}

TEST_CASE("NCCL's operations are recorded as they are called, and only once") {
  const Outcome outcome = Record({kPrograms + "/open_and_run", kPrograms + "/libnccl_client.so", "RunNcclClient"});
  const Ledger& ledger = Only(outcome);
  using record::Operation;
  struct Row {
    Operation operation;
    std::uint64_t send, receive, count;
    int element_bytes, peer;
    bool operator==(const Row&) const = default;
  };
  std::vector<Row> rows;
  for (const auto& c : ledger.All<record::Collective>(Kind::kCollective)) {
    rows.push_back({c.operation, c.send, c.receive, c.count, c.element_bytes, c.peer_or_root});
    CHECK(c.stream == 0x77);
    CHECK(c.commit.device == 3);
  }
  const std::vector<Row> expected = {{Operation::kAllReduce, 0x2000, 0x3000, 10, 4, 255},
                                     {Operation::kAllGather, 0x2000, 0x4000, 11, 2, 255},
                                     {Operation::kReduceScatter, 0x5000, 0x2000, 12, 2, 255},
                                     {Operation::kReduce, 0x2000, 0, 13, 8, 3},
                                     {Operation::kBroadcast, 0x6000, 0x6000, 14, 1, 4},
                                     {Operation::kSend, 0x8000, 0, 16, 1, 5},
                                     {Operation::kReceive, 0, 0x9000, 17, 1, 6}};
  CHECK(rows == expected);
  CHECK(ledger.All<record::Range>(Kind::kGroupStart).size() == 3);
  CHECK(ledger.All<record::Range>(Kind::kGroupEnd).size() == 3);
  CHECK(ledger.losses(Loss::kUnresolved) == 2);  // ncclAlltoAll, and PyTorch's function behind ReportBlock
  CHECK(ledger.All<record::Tag>(Kind::kTag).size() == 1);
  CHECK(ledger.All<record::Tag>(Kind::kUntag).size() == 1);
}

TEST_CASE("Communicators are recorded with what is known, and completed when NCCL can be asked") {
  const Outcome outcome = Record({kPrograms + "/open_and_run", kPrograms + "/libnccl_client.so", "RunNcclClient"});
  const Ledger& ledger = Only(outcome);
  const auto made = ledger.All<record::CommunicatorInfo>(Kind::kCommunicator);
  REQUIRE(made.size() == 5);
  const record::CommunicatorInfo &world = made[0], &half = made[1], &half_again = made[2];
  CHECK(world.nranks == 8);
  CHECK(world.rank == 2);
  CHECK(world.commit.device == 3);
  CHECK(world.id_hash != 0);
  CHECK(ledger.Text(world.name) == "data parallel");
  CHECK(world.token >> 63 == 1);
  CHECK(half.parent == world.communicator);
  CHECK(half.nranks == 0);  // not known inside the group
  CHECK(half.token != world.token);
  CHECK(half_again.communicator == half.communicator);
  CHECK(half_again.token == half.token);
  CHECK(half_again.nranks == 4);
  CHECK(half_again.rank == 1);
  CHECK(half_again.id_hash != 0);
  CHECK(half_again.id_hash != world.id_hash);
  CHECK(made[3].token == made[4].token);
  CHECK(made[3].commit.device == 5);
  CHECK(made[4].commit.device == 6);
  const auto destroyed = ledger.All<record::CommunicatorInfo>(Kind::kCommunicatorDestroy);
  REQUIRE(destroyed.size() == 2);
  CHECK(destroyed[0].communicator == half.communicator);
  CHECK(destroyed[1].communicator == made[4].communicator);
}

TEST_CASE("Reports of PyTorch's allocator are recorded for CUDA, and passed on in full") {
  const Outcome outcome = Record({kPrograms + "/open_and_run", kPrograms + "/libc10_cuda.so", "RunAllocator"});
  const Ledger& ledger = Only(outcome);
  const auto allocs = ledger.All<record::Block>(Kind::kBlockAlloc);
  const auto frees = ledger.All<record::Block>(Kind::kBlockFree);
  const auto ooms = ledger.All<record::BlockOom>(Kind::kBlockOom);
  REQUIRE(allocs.size() == 2);
  REQUIRE(frees.size() == 1);
  REQUIRE(ooms.size() == 2);
  CHECK(allocs[0].address == 0x1000);
  CHECK(allocs[0].size == 512);
  CHECK(allocs[0].commit.device == 3);
  CHECK(allocs[1].allocated == 1536);
  CHECK(allocs[1].reserved_total == 2097152);
  CHECK(frees[0].size == 512);
  CHECK(frees[0].allocated == 1024);
  CHECK(ooms[0].requested == std::uint64_t{1} << 40);
  CHECK(ooms[1].reserved_total == 2097152);
  CHECK(ledger.losses(Loss::kUnresolved) == 0);
}

TEST_CASE("The public API does what it says, awake, dormant and paused") {
  const Outcome outcome = Record({kPrograms + "/api_program"});
  const Ledger& ledger = Only(outcome);
  const auto marks = ledger.All<record::Range>(Kind::kMark);
  REQUIRE(marks.size() == 2);
  CHECK(ledger.Text(marks[0].text) == "now");
  CHECK(ledger.Path(marks[0].scope) == "before the first CUDA call/evaluation");
  CHECK(marks[1].text == 0);
  const auto tags = ledger.All<record::Tag>(Kind::kTag);
  REQUIRE(tags.size() == 1);
  CHECK(ledger.Text(tags[0].text) == "weights");
  CHECK(tags[0].size == 256);
  CHECK(ledger.All<record::Tag>(Kind::kUntag).size() == 1);
  const auto reads = ledger.All<record::ValueRead>(Kind::kValueRead);
  REQUIRE(reads.size() == 1);
  CHECK(ledger.Text(reads[0].text) == "train.py:88 step");
  CHECK(ledger.All<record::Range>(Kind::kPause).size() == 1);
  CHECK(ledger.All<record::Range>(Kind::kResume).size() == 1);
  CHECK(ledger.losses(Loss::kUnbalancedPop) == 1);
  const std::map<std::uint64_t, std::string> expected = {{0x1000, "before the first CUDA call"}, {0x3000, ""}};
  CHECK(BlockPaths(ledger) == expected);
  const auto pushes = ledger.All<record::Range>(Kind::kRangePush);
  REQUIRE(pushes.size() == 1);
  CHECK(pushes[0].commit.layer == record::Layer::kApi);
}

TEST_CASE("Without the ledger, a program that looks for its API finds none") {
  CHECK(Run({kPrograms + "/api_program"}, {}).status == 3);
}

}  // namespace
