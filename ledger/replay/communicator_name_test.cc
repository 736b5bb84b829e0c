#include "ledger/replay/communicator_name.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>

#include "ledger/format/test_ledger.h"

namespace ledger::replay {
namespace {

using format::TestLedger;

constexpr std::uint64_t kHandle = 0xabc;

TEST_CASE("a communicator has NCCL's name until the framework says of which process group it is") {
  TestLedger ledger;
  ledger.Communicator(0, kHandle, "7", 4);
  CHECK(CommunicatorName(*ledger.Read(), 0) == "communicator 0 \"7\", 4 ranks");
  CHECK(ProcessGroupName(*ledger.Read(), 0).empty());
  CHECK(ProcessGroupRanks(*ledger.Read(), 0).empty());
  ledger.ProcessGroup(kHandle, "7", "mesh_dp", 4, 1, 2);
  CHECK(CommunicatorName(*ledger.Read(), 0) == "communicator 0 \"mesh_dp\", 4 ranks");
  CHECK(ProcessGroupName(*ledger.Read(), 0) == "mesh_dp");
}

TEST_CASE("a group that the program did not describe goes by the framework's name for it") {
  for (const char* const description : {"", "undefined"}) {
    TestLedger ledger;
    ledger.Communicator(0, kHandle, "", 4);
    ledger.ProcessGroup(kHandle, "3", description, 4, 0, 1);
    CHECK(CommunicatorName(*ledger.Read(), 0) == "communicator 0 \"3\", 4 ranks");
  }
}

TEST_CASE("a communicator for sends and receives is for a part of its group") {
  TestLedger ledger;
  ledger.Communicator(0, kHandle, "", 2);
  ledger.ProcessGroup(kHandle, "1", "pp", 4, 0, 1);
  CHECK(CommunicatorName(*ledger.Read(), 0) == "communicator 0 \"pp\", 2 of 4 ranks");
}

std::string Ranks(std::uint32_t ranks, std::int32_t first, std::int32_t stride) {
  TestLedger ledger;
  ledger.Communicator(0, kHandle, "", ranks);
  ledger.ProcessGroup(kHandle, "1", "", ranks, first, stride);
  return ProcessGroupRanks(*ledger.Read(), 0);
}

TEST_CASE("ranks of the job are told by the first, the last and the stride") {
  CHECK(Ranks(8, 0, 1) == "0-7");
  CHECK(Ranks(4, 1, 4) == "1-13 by 4");
  CHECK(Ranks(1, 3, 0) == "3");
}

TEST_CASE("ranks that are not known, or not evenly spaced, are not told") {
  CHECK(Ranks(4, 2, record::kUnevenRanks).empty());
  CHECK(Ranks(4, -1, 1).empty());
  CHECK(Ranks(0, 0, 1).empty());
}

TEST_CASE("ranks that no job has are told as they stand") {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  CHECK(Ranks(std::numeric_limits<std::uint32_t>::max(), kMost, kMost) ==
        "2147483647-9223372030412324865 by 2147483647");
}

}  // namespace
}  // namespace ledger::replay
