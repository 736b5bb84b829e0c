// Reads and replays the ranks of a run, several at a time.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ledger/replay/truth.h"
#include "ledger/report/instant.h"
#include "ledger/report/model.h"
#include "tools/gpuledger/run_directory.h"

namespace gpuledger {

struct LoadOptions {
  // By the path of the ledger: what torch said about it.
  std::map<std::string, ledger::replay::Truth> truths;
  std::optional<ledger::report::InstantChoice> at;
  std::optional<int> device;  // as BuildOptions has it
};

struct LoadedRun {
  ledger::report::RunReport report;
  std::vector<std::string> unreadable;  // ranks that are not in the report, and why
};

LoadedRun LoadRun(const RunFiles& files, const LoadOptions& options);

}  // namespace gpuledger
