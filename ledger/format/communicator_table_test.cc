#include "ledger/format/communicator_table.h"

#include <catch2/catch.hpp>

namespace ledger::format {
namespace {

constexpr std::uint64_t kHandle = 0xabc;
constexpr std::uint64_t kToken = std::uint64_t{1} << 63;

record::CommunicatorInfo Made(std::uint64_t handle, std::uint64_t token) {
  record::CommunicatorInfo info = {};
  info.communicator = handle;
  info.token = token;
  return info;
}

record::ProcessGroupInfo GroupOf(std::uint64_t handle) {
  record::ProcessGroupInfo group = {};
  group.communicator = handle;
  return group;
}

TEST_CASE("a communicator is found by its handle, and by the token that it had before") {
  CommunicatorTable table;
  table.Add(Made(kHandle, kToken | 1), 10);
  table.Add(Made(kHandle + 1, kToken | 2), 20);
  CHECK(table.Find(kToken | 1, 0) == 0u);
  CHECK(table.Find(kToken | 2, 0) == 1u);
  CHECK(table.Find(kHandle + 1, 30) == 1u);
  CHECK_FALSE(table.Find(kHandle + 2, 30).has_value());
  CHECK_FALSE(table.Find(kToken | 3, 30).has_value());
}

TEST_CASE("what is learnt of a communicator later makes no second one") {
  CommunicatorTable table;
  table.Add(Made(kHandle, kToken | 1), 10);
  table.Add(Made(kHandle, kToken | 1), 20);
  REQUIRE(table.all().size() == 1);
  CHECK(table.all()[0].made == 10);
  CHECK(table.all()[0].info == 20);
  CHECK(table.Find(kToken | 1, 0) == 0u);
  CHECK(table.Find(kHandle, 15) == 0u);
}

TEST_CASE("a process group is that of the communicator which has the handle then") {
  CommunicatorTable table;
  table.Add(Made(kHandle, kToken | 1), 10);
  table.AddGroup(GroupOf(kHandle), 15);
  table.Add(Made(kHandle, kToken | 2), 20);
  table.AddGroup(GroupOf(kHandle), 25);
  table.Add(Made(kHandle, kToken | 3), 30);
  table.AddGroup(GroupOf(0x123), 35);
  REQUIRE(table.all().size() == 3);
  CHECK(table.all()[0].group == 15);
  CHECK(table.all()[1].group == 25);
  CHECK(table.all()[2].group == CommunicatorTable::kNone);
  CHECK(table.Find(kHandle, 5) == 0u);
  CHECK(table.Find(kHandle, 12) == 0u);
  CHECK(table.Find(kHandle, 20) == 1u);
  CHECK(table.Find(kHandle, 99) == 2u);
}

}  // namespace
}  // namespace ledger::format
