#include "tools/gpuledger/run_directory.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "ledger/format/test_ledger.h"
#include "tools/gpuledger/load.h"

namespace gpuledger {
namespace {

using ledger::format::TestLedger;

constexpr std::uint64_t kSecond = 1'000'000'000;

class RunFolder {
 public:
  RunFolder() {
    char name[] = "/tmp/gpuledger_test.XXXXXX";
    path_ = mkdtemp(name);
  }
  ~RunFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

  std::string Add(int rank, std::uint32_t pid, const std::string& run_id, std::uint64_t begin_s) {
    TestLedger ledger;
    ledger.header().rank = rank;
    ledger.header().pid = pid;
    ledger.header().open_realtime_ns += begin_s * kSecond;
    std::strncpy(ledger.header().run_id, run_id.c_str(), sizeof(ledger.header().run_id) - 1);
    ledger.BlockAlloc(0, 0x1000, 512);
    const std::string path = path_ + "/rank" + std::to_string(rank) + ".pid" + std::to_string(pid) + ".ledger";
    REQUIRE(ledger.WriteTo(path));
    return path;
  }

 private:
  std::string path_;
};

TEST_CASE("the ranks of a run, in order") {
  RunFolder folder;
  folder.Add(10, 3, "a", 0);
  folder.Add(2, 2, "a", 0);
  folder.Add(2, 1, "a", 0);
  std::ofstream(folder.path() + "/notes.txt") << "not a ledger";
  const auto files = FindRun(folder.path(), "");
  REQUIRE(files.ok());
  REQUIRE(files->ledgers.size() == 3);
  CHECK(files->ledgers[0].pid == 1);
  CHECK(files->ledgers[1].pid == 2);
  CHECK(files->ledgers[2].rank == 10);
  CHECK(files->run == "a");
  CHECK(files->notes.empty());
  CHECK(CountLedgers(folder.path()) == 3);
}

TEST_CASE("of several runs the newest, unless another is named") {
  RunFolder folder;
  folder.Add(0, 1, "newer", 100);
  folder.Add(0, 2, "older", 50);
  CHECK(FindRun(folder.path(), "")->run == "newer");
  CHECK(FindRun(folder.path(), "")->notes.size() == 1);
  CHECK(FindRun(folder.path(), "older")->ledgers[0].pid == 2);
  const auto missing = FindRun(folder.path(), "nowhere");
  CHECK(missing.status().message().find("there are: older, newer") != std::string::npos);
}

TEST_CASE("processes without a run's id belong together when they ran at the same time") {
  RunFolder folder;
  folder.Add(0, 1, "", 0);
  folder.Add(1, 2, "", 0);
  folder.Add(0, 3, "", 100);
  const auto newest = FindRun(folder.path(), "");
  REQUIRE(newest.ok());
  CHECK(newest->run == "pid3");
  CHECK(newest->ledgers.size() == 1);
  CHECK(FindRun(folder.path(), "pid1")->ledgers.size() == 2);
}

TEST_CASE("one ledger is a run, too; nothing and garbage are errors that say so") {
  RunFolder folder;
  CHECK(FindRun(folder.path(), "").status().message().find("no ledgers here") != std::string::npos);
  CHECK(FindRun(folder.path() + "/nowhere", "").status().message().find("no such directory") != std::string::npos);
  const std::string path = folder.Add(0, 1, "a", 0);
  CHECK(FindRun(path, "")->ledgers.size() == 1);
  std::ofstream(folder.path() + "/rank1.pid2.ledger") << "garbage";
  const auto files = FindRun(folder.path(), "");
  REQUIRE(files.ok());
  CHECK(files->unreadable.size() == 1);
  const LoadedRun run = LoadRun(*files, {});
  CHECK(run.report.ranks.size() == 1);
  CHECK(run.unreadable.size() == 1);
  CHECK(run.report.notes.size() == 1);
  CHECK_FALSE(FindRun(folder.path() + "/rank1.pid2.ledger", "").ok());
}

TEST_CASE("ranks are replayed side by side and come back in order") {
  RunFolder folder;
  for (int rank = 0; rank < 9; ++rank) folder.Add(rank, 100 + static_cast<std::uint32_t>(rank), "a", 0);
  const LoadedRun run = LoadRun(*FindRun(folder.path(), ""), {});
  REQUIRE(run.report.ranks.size() == 9);
  for (int rank = 0; rank < 9; ++rank) CHECK(run.report.ranks[static_cast<std::size_t>(rank)].rank == rank);
}

}  // namespace
}  // namespace gpuledger
