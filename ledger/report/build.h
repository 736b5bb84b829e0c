// From replayed ledgers to the report's model.
#pragma once

#include <optional>
#include <vector>

#include "ledger/replay/analysis.h"
#include "ledger/replay/identity.h"
#include "ledger/report/instant.h"
#include "ledger/report/model.h"

namespace ledger::report {

struct BuildOptions {
  // Identities that the ledger cannot check by itself.
  std::vector<replay::Identity> more;
  // An instant to describe besides the allocated peak.
  std::optional<InstantChoice> at;
  // The main device of a rank that uses it; of others, and by default, the one with the highest allocated peak.
  std::optional<int> device;
};

// The result holds no reference to the ledger.
RankReport BuildRank(const replay::Analysis& analysis, const BuildOptions& options);

// Orders the ranks and puts their times on one axis.
RunReport BuildRun(std::vector<RankReport> ranks);

}  // namespace ledger::report
