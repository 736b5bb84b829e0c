// Which function is reached, by symbol, dlsym and cuGetProcAddress, is the same as without libledger.so.
#include <catch2/catch.hpp>
#include <string>

#include "tests/programs/run_program.h"

namespace ledger::testing {
namespace {

const std::string kPrograms = PROGRAM_DIR;

Outcome WithAndWithout(const std::vector<std::string>& command, std::map<std::string, std::string> environment) {
  const Outcome without = Run(command, environment);
  environment["LD_PRELOAD"] = LEDGER_LIBRARY;
  Outcome with = Run(command, environment);
  CHECK(with.status == without.status);
  CHECK(with.output == without.output);
  CHECK(with.errors == without.errors);
  return with;
}

std::size_t Lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_CASE("every name, version and stream kind is answered as the driver answers it") {
  for (const char* driver : {"driver", "old-driver"}) {
    INFO(driver);
    const Outcome outcome =
        WithAndWithout({kPrograms + "/resolve_matrix"}, {{"LD_LIBRARY_PATH", kPrograms + "/" + driver}});
    CHECK(outcome.status == 0);
    CHECK(Lines(outcome.output) > 1000);
    CHECK(outcome.output.find("reaches cuMemAllocAsync_ptsz") != std::string::npos);
    CHECK(outcome.output.find("reaches cuCtxCreate_v3") != std::string::npos);
    CHECK(outcome.ledgers.empty());
  }
}

TEST_CASE("dlsym finds what it finds without us: no CUDA where there is none, and each caller's own surroundings") {
  const Outcome outcome =
      WithAndWithout({kPrograms + "/global_scope", kPrograms + "/clients/libledger_test_next.so"}, {});
  CHECK(outcome.status == 0);
  CHECK(outcome.output.find("cudaMalloc: null, message") != std::string::npos);
  CHECK(outcome.output.find("neighbour by its bare name: opened") != std::string::npos);
}

TEST_CASE("two CUDA runtimes in a process: each library goes on with its own") {
  const std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", kPrograms + "/runtimes"}};
  const Outcome outcome = WithAndWithout(
      {kPrograms + "/global_scope", kPrograms + "/clients/libclient12.so", kPrograms + "/clients/libclient13.so"},
      environment);
  CHECK(outcome.output.find("client 12: result 0 from runtime 12000") != std::string::npos);
  CHECK(outcome.output.find("client 13: result 0 from runtime 13000") != std::string::npos);
  // Both were opened RTLD_LOCAL, and both are recorded, each as its own owner.
  REQUIRE(outcome.ledgers.size() == 1);
  const Ledger& ledger = outcome.ledgers[0];
  const auto allocations = ledger.All<record::Allocation>(record::Kind::kAlloc);
  REQUIRE(allocations.size() == 2);
  CHECK(ledger.Text(allocations[0].owner) == "libclient12.so");
  CHECK(ledger.Text(allocations[1].owner) == "libclient13.so");
  CHECK(ledger.All<record::Allocation>(record::Kind::kFree).size() == 2);
}

TEST_CASE("NVIDIA's tools get the driver's own functions, everybody else the wrappers of them") {
  const std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", kPrograms + "/driver"}};
  WithAndWithout({kPrograms + "/global_scope", kPrograms + "/clients/libcupti.so.13"}, environment);
  auto preloaded = environment;
  preloaded["LD_PRELOAD"] = LEDGER_LIBRARY;
  const Outcome outcome =
      Run({kPrograms + "/global_scope", kPrograms + "/clients/libcupti.so.13", kPrograms + "/clients/liblookup.so"},
          preloaded);
  CHECK(outcome.output.find("tool: cuMemAlloc_v2 of libcuda.so.1") != std::string::npos);
  CHECK(outcome.output.find("client: cuMemAlloc_v2 of libledger.so") != std::string::npos);
}

}  // namespace
}  // namespace ledger::testing
