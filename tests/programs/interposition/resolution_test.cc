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

TEST_CASE("three CUDA runtimes in a process, off the search path: each library goes on with its own") {
  const std::vector<std::string> versions = {"11", "12", "13"};
  std::vector<std::string> command = {kPrograms + "/global_scope"};
  for (const std::string& version : versions) command.push_back(kPrograms + "/clients/libclient" + version + ".so");
  const Outcome outcome = WithAndWithout(command, {{"LD_LIBRARY_PATH", ""}});
  // All were opened RTLD_LOCAL, and all are recorded, each as its own owner.
  REQUIRE(outcome.ledgers.size() == 1);
  const Ledger& ledger = outcome.ledgers[0];
  const auto allocations = ledger.All<record::Allocation>(record::Kind::kAlloc);
  REQUIRE(allocations.size() == versions.size());
  for (std::size_t i = 0; i < versions.size(); ++i) {
    INFO(versions[i]);
    CHECK(outcome.output.find("client " + versions[i] + ": result 0 from runtime " + versions[i] + "000") !=
          std::string::npos);
    CHECK(ledger.Text(allocations[i].owner) == "libclient" + versions[i] + ".so");
  }
  CHECK(ledger.All<record::Allocation>(record::Kind::kFree).size() == versions.size());
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
