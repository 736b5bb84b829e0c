// The recorder as hooks use it, linked into this program. Each test runs in a child, as a process has one recorder.
#include "interpose/core/recorder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "interpose/core/definitions.h"
#include "interpose/core/options.h"
#include "tests/programs/run_program.h"

namespace ledger {
namespace {

using record::Kind;
using record::Layer;
using record::Loss;
using testing::Ledger;

// Runs `body` in a child that records into a folder of its own, lets it exit as programs do, and reads its ledgers.
template <typename Body>
std::vector<Ledger> Recorded(Body body) {
  const testing::TemporaryFolder folder;
  const std::string directory = (folder.path() / "deep" / "run").string();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    setenv("LEDGER_DIR", directory.c_str(), 1);
    body();
    exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  CHECK(status == 0);
  std::vector<Ledger> ledgers;
  if (std::filesystem::exists(directory)) {
    for (const auto& file : std::filesystem::directory_iterator(directory)) ledgers.emplace_back(file.path());
  }
  return ledgers;
}

void AppendBlock(std::uint64_t address) {
  record::Block block = {};
  block.commit.kind = static_cast<std::uint16_t>(Kind::kBlockAlloc);
  block.address = address;
  block.scope = CurrentScope();
  Append(block);
}

TEST_CASE("a dormant recorder has no file, and what was pushed before it woke is defined when it does") {
  CHECK(Recorded([] { PushScope(Layer::kNvtx, "", "never seen", 0); }).empty());

  const auto ledgers = Recorded([] {
    PushScope(Layer::kNvtx, "", "setup", 0);
    if (Active() || InternText("too early") != 0) abort();
    if (!Wake() || !Active()) abort();
    PushScope(Layer::kNvtx, "domain", "step", 7);
    AppendBlock(1);
    PopScope(Layer::kNvtx, "domain");
    AppendBlock(2);
  });
  REQUIRE(ledgers.size() == 1);
  const Ledger& ledger = ledgers[0];
  CHECK(ledger.header().clean_end == 1);
  const auto blocks = ledger.All<record::Block>(Kind::kBlockAlloc);
  REQUIRE(blocks.size() == 2);
  CHECK(ledger.Path(blocks[0].scope) == "setup/domain:step");
  CHECK(ledger.Path(blocks[1].scope) == "setup");
  CHECK(blocks[0].commit.thread == ledger.header().pid);
  CHECK(blocks[0].ticks >= ledger.header().open_ticks);
  const auto pushes = ledger.All<record::Range>(Kind::kRangePush);
  REQUIRE(pushes.size() == 1);  // the first one was pushed while dormant
  CHECK(pushes[0].payload == 7);
  CHECK(ledger.All<record::Range>(Kind::kRangePop).size() == 1);
}

TEST_CASE("ranges of two domains may be interleaved; a pop without a push is a counted loss") {
  const auto ledgers = Recorded([] {
    Wake();
    PushScope(Layer::kNvtx, "a", "outer", 0);
    PushScope(Layer::kNvtx, "b", "inner", 0);
    PopScope(Layer::kNvtx, "a");
    AppendBlock(1);
    PopScope(Layer::kApi, "b");  // another source: not its range
    PopScope(Layer::kNvtx, "b");
    AppendBlock(2);
    PopScope(Layer::kNvtx, "b");
  });
  REQUIRE(ledgers.size() == 1);
  const auto blocks = ledgers[0].All<record::Block>(Kind::kBlockAlloc);
  REQUIRE(blocks.size() == 2);
  CHECK(ledgers[0].Path(blocks[0].scope) == "b:inner");
  CHECK(blocks[1].scope == 0);
  CHECK(ledgers[0].losses(Loss::kUnbalancedPop) == 2);
}

TEST_CASE("ranges that are nested too deeply are counted, and the path is right again after them") {
  constexpr int kDepth = 600;
  const auto ledgers = Recorded([] {
    Wake();
    PushScope(Layer::kApi, "", "bottom", 0);
    for (int i = 0; i < kDepth; ++i) PushScope(Layer::kApi, "", "down", 0);
    for (int i = 0; i < kDepth; ++i) PopScope(Layer::kApi, "");
    AppendBlock(1);
  });
  REQUIRE(ledgers.size() == 1);
  CHECK(ledgers[0].Path(ledgers[0].All<record::Block>(Kind::kBlockAlloc).at(0).scope) == "bottom");
  CHECK(ledgers[0].losses(Loss::kRangeDepth) > 0);
  CHECK(ledgers[0].losses(Loss::kUnbalancedPop) == 0);
}

TEST_CASE("eight threads intern the same texts: one id each, defined before anybody uses it") {
  constexpr int kTexts = 500;
  const auto ledgers = Recorded([] {
    Wake();
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([] {
        for (int i = 0; i < kTexts; ++i) {
          record::Setting use = {};
          use.commit.kind = static_cast<std::uint16_t>(Kind::kSetting);
          use.key = InternText("text " + std::to_string(i));
          use.value = InternText("used");
          Append(use);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  });
  REQUIRE(ledgers.size() == 1);
  std::map<std::string, std::set<std::uint32_t>> ids;
  std::set<std::uint32_t> defined;
  std::uint64_t undefined = 0;
  for (const auto& record : ledgers[0].InOrder<record::TextChunk>({Kind::kText, Kind::kSetting})) {
    if (record.commit.kind == static_cast<std::uint16_t>(Kind::kText)) {
      if (record.chunk == 0) CHECK(defined.insert(record.id).second);
      continue;
    }
    record::Setting use;
    std::memcpy(&use, &record, sizeof(use));
    undefined += defined.count(use.key) == 0;
    ids[ledgers[0].Text(use.key)].insert(use.key);
  }
  CHECK(undefined == 0);
  for (int i = 0; i < kTexts; ++i) CHECK(ids["text " + std::to_string(i)].size() == 1);
}

TEST_CASE("a text that is too long is cut between characters and says so") {
  const auto ledgers = Recorded([] {
    Wake();
    NoteSetting("long", std::string(2000, 'x'));
    NoteSetting("accents", std::string(956, 'x') + "\u00e9\u00e9\u00e9\u00e9");
    NoteSetting("just right", std::string(record::kMaxTextBytes, 'y'));
  });
  REQUIRE(ledgers.size() == 1);
  std::map<std::string, std::string> settings;
  for (const auto& setting : ledgers[0].All<record::Setting>(Kind::kSetting)) {
    settings[ledgers[0].Text(setting.key)] = ledgers[0].Text(setting.value);
  }
  CHECK(settings["long"] == std::string(957, 'x') + "...");
  CHECK(settings["accents"] == std::string(956, 'x') + "...");
  CHECK(settings["just right"] == std::string(960, 'y'));
}

TEST_CASE("paused, nothing is recorded") {
  const auto ledgers = Recorded([] {
    Wake();
    AppendBlock(1);
    Pause();
    if (Active()) abort();
    if (Wake()) abort();
    PushScope(Layer::kApi, "", "unseen", 0);
    PopScope(Layer::kApi, "");
    Resume();
    if (!Active()) abort();
    AppendBlock(2);
  });
  REQUIRE(ledgers.size() == 1);
  CHECK(ledgers[0].All<record::Range>(Kind::kRangePush).empty());
  const std::vector<Kind> kinds = ledgers[0].Kinds();
  const auto pause = std::find(kinds.begin(), kinds.end(), Kind::kPause);
  REQUIRE(pause != kinds.end());
  const auto resume = std::find(pause, kinds.end(), Kind::kResume);
  REQUIRE(resume != kinds.end());
  CHECK(std::all_of(pause + 1, resume, [](Kind kind) { return kind == Kind::kText || kind == Kind::kScope; }));
  CHECK(std::find(resume, kinds.end(), Kind::kBlockAlloc) != kinds.end());
}

TEST_CASE("a forked child is dormant, keeps its scopes, and gets a file of its own") {
  const auto ledgers = Recorded([] {
    Wake();
    PushScope(Layer::kApi, "", "parent", 0);
    AppendBlock(1);
    if (const pid_t child = fork(); child == 0) {
      if (Active()) abort();
      Wake();
      AppendBlock(2);
      exit(0);
    } else {
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) abort();
    }
    AppendBlock(3);
  });
  REQUIRE(ledgers.size() == 2);
  for (const Ledger& ledger : ledgers) {
    const auto blocks = ledger.All<record::Block>(Kind::kBlockAlloc);
    REQUIRE(!blocks.empty());
    const bool child = blocks[0].address == 2;
    CHECK(blocks.size() == (child ? 1u : 2u));
    for (const auto& block : blocks) {
      CHECK(ledger.Path(block.scope) == "parent");
      CHECK(block.commit.thread == ledger.header().pid);
    }
    CHECK(ledger.header().clean_end == 1);
  }
}

TEST_CASE("the caller's errno survives the opening of a file") {
  Recorded([] {
    errno = 4711;
    Wake();
    if (errno != 4711) abort();
    OwnerOf(reinterpret_cast<const void*>(&AppendBlock));
    if (errno != 4711) abort();
  });
}

TEST_CASE("the owner of code is its library, or the program by its own name") {
  const auto ledgers = Recorded([] {
    Wake();
    NoteSetting("program", TextOf(OwnerOf(reinterpret_cast<const void*>(&AppendBlock))));
    NoteSetting("library", TextOf(OwnerOf(reinterpret_cast<const void*>(&getenv))));
    NoteSetting("nowhere", TextOf(OwnerOf(reinterpret_cast<const void*>(0x10))));
  });
  REQUIRE(ledgers.size() == 1);
  std::map<std::string, std::string> settings;
  for (const auto& setting : ledgers[0].All<record::Setting>(Kind::kSetting)) {
    settings[ledgers[0].Text(setting.key)] = ledgers[0].Text(setting.value);
  }
  CHECK(settings["program"] == "ledger_recorder_test");
  CHECK(settings["library"] == "libc.so.6");
  CHECK(settings["nowhere"].empty());
}

TEST_CASE("settings: units, nonsense, defaults") {
  const struct {
    const char* value;
    std::uint64_t bytes;
  } kSizes[] = {{"12345", 12345}, {"64K", 64 << 10}, {"2M", 2 << 20}, {"3G", 3ull << 30}, {"1T", 1ull << 40},
                {"M", 0},         {"-1", 0},         {"1Q", 0},       {"99999999999T", 0}};
  for (const auto& size : kSizes) {
    setenv("LEDGER_MAX_BYTES", size.value, 1);
    Options options = {};
    ReadOptions(options);
    INFO(size.value);
    CHECK(options.max_bytes == size.bytes);
    CHECK(options.ask_memory);
    CHECK_FALSE(options.off);
    CHECK(std::string(options.directory) == "ledger-run");
  }
  unsetenv("LEDGER_MAX_BYTES");
}

}  // namespace
}  // namespace ledger
