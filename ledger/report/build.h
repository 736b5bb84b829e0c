// From replayed ledgers to the report's model.
#pragma once

#include <vector>

#include "ledger/replay/analysis.h"
#include "ledger/replay/identity.h"
#include "ledger/report/model.h"

namespace ledger::report {

// `more` are identities that the ledger cannot check by itself. The result holds no reference to the ledger.
RankReport BuildRank(const replay::Analysis& analysis, const std::vector<replay::Identity>& more);

// Orders the ranks and puts their times on one axis.
RunReport BuildRun(std::vector<RankReport> ranks);

}  // namespace ledger::report
