#include "ledger/report/sheet.h"

#include <catch2/catch.hpp>

namespace ledger::report {
namespace {

InstantReport Make() {
  InstantReport instant;
  replay::Balance& balance = instant.balance;
  balance.allocated = 3;
  balance.free.cached = 2;
  balance.reserved = 5;
  balance.nccl = {{"communicator 0", 7, 1}};
  balance.context = 10;
  balance.unexplained = 1;
  balance.used = 23;
  instant.categories.resize(attribution::kCategoryCount);
  for (std::size_t i = 0; i < attribution::kCategoryCount; ++i) {
    instant.categories[i].category = static_cast<attribution::Category>(i);
  }
  instant.categories[attribution::Index(attribution::Category::kParameter)].bytes = 2;
  instant.categories[attribution::Index(attribution::Category::kUnknown)].bytes = 1;
  return instant;
}

TEST_CASE("the children of a row add up to it") {
  const InstantReport instant = Make();
  REQUIRE(instant.balance.Sum() == instant.balance.used);
  const auto rows = MakeSheet({&instant});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::uint64_t children = 0;
    bool any = false;
    for (std::size_t j = i + 1; j < rows.size() && rows[j].depth > rows[i].depth; ++j) {
      if (rows[j].depth != rows[i].depth + 1) continue;
      any = true;
      children += rows[j].bytes[0];
    }
    if (any) CHECK(children == rows[i].bytes[0]);
  }
}

TEST_CASE("columns share rows; a member that only one has is zero in the other") {
  const InstantReport a = Make();
  InstantReport b = Make();
  b.balance.nccl = {{"communicator 1", 7, 1}};
  const auto rows = MakeSheet({&a, &b});
  for (const auto& row : rows) REQUIRE(row.bytes.size() == 2);
  const auto find = [&](const std::string& name) {
    for (const auto& row : rows) {
      if (row.name == name) return row;
    }
    return SheetRow{};
  };
  CHECK(find("communicator 0").bytes == std::vector<std::uint64_t>{7, 0});
  CHECK(find("communicator 1").bytes == std::vector<std::uint64_t>{0, 7});
}

TEST_CASE("the unexplained is there even when it is nothing") {
  const InstantReport instant;
  bool found = false;
  for (const auto& row : MakeSheet({&instant})) found = found || row.name == "unexplained";
  CHECK(found);
}

}  // namespace
}  // namespace ledger::report
