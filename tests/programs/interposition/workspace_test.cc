// The memory that cuBLAS is lent to work in has its name in the ledger, once for each time that it was got.
#include <catch2/catch.hpp>
#include <string>

#include "tests/programs/run_program.h"

namespace ledger::testing {
namespace {

TEST_CASE("workspaces of cuBLAS and cuBLASLt are named, by whatever way the function was reached") {
  const std::string folder = PROGRAM_DIR;
  const std::vector<std::string> command = {folder + "/global_scope", folder + "/clients/libworkspaces.so"};
  std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", SIMGPU_DIR},
                                                    {"SIMGPU_PROFILE", "tiny"},
                                                    {"SIMGPU_DEVICES", "1"},
                                                    {"CUDA_VISIBLE_DEVICES", ""}};
  const Outcome without = Run(command, environment);
  environment["LD_PRELOAD"] = LEDGER_LIBRARY;
  const Outcome outcome = Run(command, environment);
  INFO(outcome.output << outcome.errors);
  CHECK(outcome.status == without.status);
  CHECK(outcome.output == without.output);
  REQUIRE(outcome.output.find("linked multiply 0") != std::string::npos);
  REQUIRE(outcome.ledgers.size() == 1);
  const Ledger& ledger = outcome.ledgers[0];

  // Each of the client's allocations that became a workspace, in their order.
  std::vector<std::uint64_t> lent;
  for (const auto& got : ledger.All<record::Allocation>(record::Kind::kAlloc)) {
    if (ledger.Text(got.owner) == "libworkspaces.so") lent.push_back(got.address);
  }
  REQUIRE(lent.size() == 4);
  const auto names = ledger.All<record::Name>(record::Kind::kName);
  REQUIRE(names.size() == 4);
  for (std::size_t i = 0; i < names.size(); ++i) {
    INFO(i);
    CHECK(names[i].address == lent[i]);
    CHECK(names[i].bytes == 1 << 20);
    CHECK(names[i].category == record::NameCategory::kWorkspace);
    CHECK(names[i].flags == 0);
    CHECK(names[i].commit.device == 0);
    CHECK(names[i].commit.layer == record::Layer::kRuntime);
    CHECK(ledger.Text(names[i].text) == (i < 2 ? "cuBLAS workspace" : "cuBLASLt workspace"));
  }
}

}  // namespace
}  // namespace ledger::testing
