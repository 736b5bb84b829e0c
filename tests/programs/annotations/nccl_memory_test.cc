// Whose memory NCCL's is, on simulated GPUs.
#include <catch2/catch.hpp>
#include <set>

#include "tests/programs/run_program.h"

namespace {

using namespace ledger;
using record::Kind;

TEST_CASE("All device memory that NCCL gets and gives back is a communicator's") {
  const testing::Outcome outcome =
      testing::Run({LEDGER_PROGRAMS "/nccl_memory_program"},
                   {{"LD_PRELOAD", LEDGER_LIBRARY}, {"LD_LIBRARY_PATH", LEDGER_SIMGPU}, {"SIMGPU_DEVICES", "2"}});
  INFO(outcome.errors);
  REQUIRE(outcome.status == 0);
  REQUIRE(outcome.ledgers.size() == 1);
  const testing::Ledger& ledger = outcome.ledgers.front();

  // A communicator's memory goes by its token while it is made, and by its handle later.
  std::map<std::uint64_t, std::uint64_t> token_of;  // of a token or handle
  std::map<std::uint64_t, std::int8_t> device_of;
  std::set<std::uint64_t> hashes;
  for (const auto& info : ledger.All<record::CommunicatorInfo>(Kind::kCommunicator)) {
    token_of[info.token] = token_of[info.communicator] = info.token;
    device_of[info.token] = info.commit.device;
    hashes.insert(info.id_hash);
    CHECK(info.nranks == 2);
    CHECK(info.rank == static_cast<std::uint32_t>(info.commit.device));
  }
  REQUIRE(device_of.size() == 4);
  CHECK(hashes.size() == 2);  // the same on both ranks

  std::map<std::uint64_t, int> got;
  for (const Kind kind : {Kind::kAlloc, Kind::kHandleCreate}) {
    for (const auto& allocation : ledger.All<record::Allocation>(kind)) {
      if (ledger.Text(allocation.owner) != "libnccl.so.2" || allocation.commit.device == record::kNoDevice) continue;
      INFO("address " << allocation.address << ", context " << allocation.context);
      REQUIRE(token_of.count(allocation.context) == 1);
      const std::uint64_t token = token_of[allocation.context];
      CHECK(device_of[token] == allocation.commit.device);
      ++got[token];
    }
  }
  CHECK(got.size() == 4);
  CHECK(ledger.All<record::Collective>(Kind::kCollective).size() == 2 * 3);
}

// NCCL begins the ranges of communicators in NVTX's core and ends them in its payload extension.
TEST_CASE("What follows the making of a communicator is not a part of it") {
  const testing::Outcome outcome =
      testing::Run({LEDGER_PROGRAMS "/nccl_memory_program"},
                   {{"LD_PRELOAD", LEDGER_LIBRARY}, {"LD_LIBRARY_PATH", LEDGER_SIMGPU}, {"SIMGPU_DEVICES", "2"}});
  INFO(outcome.errors);
  REQUIRE(outcome.ledgers.size() == 1);
  const testing::Ledger& ledger = outcome.ledgers.front();
  const auto collectives = ledger.All<record::Collective>(Kind::kCollective);
  REQUIRE(!collectives.empty());
  for (const auto& collective : collectives) {
    const std::string path = ledger.Path(collective.scope);
    CAPTURE(path);
    CHECK(path.find("ncclCommInitRank") == std::string::npos);
  }
  CHECK(ledger.losses(record::Loss::kUnbalancedPop) == 0);
}

}  // namespace
