// The ledgers of one run, found in a directory that may hold several.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gpuledger {

struct LedgerPath {
  std::string path;
  int rank = 0;
  std::uint32_t pid = 0;
};

struct RunFiles {
  std::string run;                      // its id, or "pid4711" where the launcher gave none
  std::vector<LedgerPath> ledgers;      // by rank, then pid
  std::vector<std::string> unreadable;  // what is wrong with a file whose header cannot be read
  std::vector<std::string> notes;       // such as other runs in the directory
};

// `path` is a directory, or one ledger. Of several runs the one that began last is taken, unless `run` names another.
absl::StatusOr<RunFiles> FindRun(const std::string& path, const std::string& run);

// Number of files named like ledgers.
std::size_t CountLedgers(const std::string& directory);

}  // namespace gpuledger
