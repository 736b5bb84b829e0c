#include "ledger/report/text.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "ledger/report/build.h"
#include "ledger/report/sample_run.h"

namespace ledger::report {
namespace {

RunReport SampleReport() {
  std::vector<RankReport> ranks;
  for (int rank = 0; rank < kSampleRanks; ++rank) {
    const auto file = *SampleRank(rank).Read();
    ranks.push_back(BuildRank(replay::Analysis(file, {}), {}));
  }
  return BuildRun(std::move(ranks));
}

// The golden file is what `ledger_sample_run DIR && gpuledger report DIR` prints; look at a difference before it is
// taken over.
TEST_CASE("the report prints as it is known to print") {
  const std::string path = LEDGER_SOURCE_DIR "/tests/golden/report.txt";
  std::ifstream file(path);
  INFO("golden file: " << path);
  REQUIRE(file.good());
  const std::string golden((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  CHECK(ToText(SampleReport(), {}) == golden);
}

TEST_CASE("values that were read back from simulated devices are warned of in the head") {
  CHECK(ToText(SampleReport(), {}).find("train.py:88 train_step  x2") != std::string::npos);
}

TEST_CASE("a failed identity shows its rank and detail") {
  RunReport run = SampleReport();
  run.ranks[1].identities[0].holds = false;
  run.ranks[1].identities[0].detail = "off by one";
  const std::string text = IdentitiesText(run, false);
  CHECK(text.find("FAILS  replayed_allocated") != std::string::npos);
  CHECK(text.find("rank 1  FAILS  off by one") != std::string::npos);
  CHECK(text.find("holds  replayed_reserved") != std::string::npos);
}

TEST_CASE("statements about no block are in the head, by kind, and nowhere when there are none") {
  RunReport run = SampleReport();
  CHECK(ToText(run, {}).find("unplaced") == std::string::npos);
  run.ranks[0].unplaced.names = 1;
  run.ranks[0].unplaced.saved_tensors = 1200;
  run.ranks[1].unplaced.buffers = 2;
  const std::string text = ToText(run, {});
  CHECK(text.find("unplaced   1 name, 1,200 saved tensors, 2 buffers on all ranks at addresses where no block") !=
        std::string::npos);
  CHECK(text.find("tag") == std::string::npos);
  run.ranks[1].unplaced.buffers = 0;
  CHECK(ToText(run, {}).find("1,200 saved tensors on rank 0 at addresses") != std::string::npos);
}

TEST_CASE("an instant that only one rank has is shown of that rank alone") {
  RunReport run = SampleReport();
  for (RankReport& rank : run.ranks) rank.at_name = "mark:here";
  run.ranks[0].devices[0].at = run.ranks[0].devices[0].at_peak;
  const std::string text = ToText(run, {});
  CHECK(text.find("Who held it: rank 0, device 0, at mark:here") != std::string::npos);
  const std::size_t sheet = text.find("Balance sheet of each rank's device at mark:here");
  REQUIRE(sheet != std::string::npos);
  CHECK(text.find("rank 1", sheet) > text.find("device used", sheet));
}

TEST_CASE("losses and ranks without a clean end are in the head") {
  RunReport run = SampleReport();
  run.ranks[0].clean_end = false;
  run.ranks[0].losses.push_back({"uncommitted", 1, "records that were being written"});
  const std::string text = ToText(run, {});
  CHECK(text.find("LOSSES") != std::string::npos);
  CHECK(text.find("uncommitted: 1 on rank 0") != std::string::npos);
  CHECK(text.find("rank 0 without a clean end") != std::string::npos);
  CHECK(text.find("every figure below is exact") == std::string::npos);
}

}  // namespace
}  // namespace ledger::report
