// Memory that belongs to another process or another API is recorded as theirs, once, and its end as well.
#include <catch2/catch.hpp>
#include <string>

#include "tests/programs/run_program.h"

namespace ledger::testing {
namespace {

using record::Allocation;
using record::Kind;
using record::Layer;
using record::Memory;

constexpr std::uint64_t kMiB = 1024 * 1024;

TEST_CASE("external objects, their mappings and multicast objects are another's memory, seen once") {
  const std::string folder = PROGRAM_DIR;
  const std::vector<std::string> command = {folder + "/global_scope", folder + "/clients/libsharing.so"};
  const Outcome without = Run(command, {{"LD_LIBRARY_PATH", ""}});
  const Outcome outcome = Run(command, {{"LD_LIBRARY_PATH", ""}, {"LD_PRELOAD", LEDGER_LIBRARY}});
  CHECK(outcome.status == without.status);
  CHECK(outcome.output == without.output);
  INFO(outcome.output << outcome.errors);
  REQUIRE(outcome.ledgers.size() == 1);
  const Ledger& ledger = outcome.ledgers[0];

  // In the program's order: at the runtime, at the driver, multicast.
  struct Expected {
    std::uint64_t address, size;
    Layer layer;
  };
  const Expected kImports[] = {
      {0xE1000, 16 * kMiB, Layer::kRuntime}, {0xE1000, 8 * kMiB, Layer::kDriver}, {0xE3000, 0, Layer::kDriver}};
  const Expected kMaps[] = {{0xE2000000 + kMiB, 4 * kMiB, Layer::kRuntime}, {0xE2000000, 2 * kMiB, Layer::kDriver}};
  const auto check = [&](Kind kind, const auto& expected, bool sized) {
    const auto records = ledger.All<Allocation>(kind);
    REQUIRE(records.size() == std::size(expected));
    for (std::size_t i = 0; i < records.size(); ++i) {
      INFO("kind " << static_cast<int>(kind) << ", record " << i);
      CHECK(records[i].address == expected[i].address);
      CHECK(records[i].size == (sized ? expected[i].size : 0));
      CHECK(records[i].commit.layer == expected[i].layer);
      CHECK(records[i].result == 0);
      if (sized) CHECK(records[i].memory == Memory::kPeer);
      CHECK(ledger.Text(records[i].owner) == "libsharing.so");
    }
  };
  check(Kind::kHandleImport, kImports, true);
  check(Kind::kHandleRelease, kImports, false);
  check(Kind::kAlloc, kMaps, true);
  check(Kind::kFree, kMaps, false);
  for (const auto& mapped : ledger.All<Allocation>(Kind::kAlloc)) CHECK(mapped.context == 0xE1000);

  const auto bound = ledger.All<record::Mapping>(Kind::kMap);
  REQUIRE(bound.size() == 1);
  CHECK(bound[0].handle == 0xE3000);
  CHECK(bound[0].size == 32 * kMiB);
  CHECK(ledger.All<record::Mapping>(Kind::kUnmap).size() == 1);
}

}  // namespace
}  // namespace ledger::testing
