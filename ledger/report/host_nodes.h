// Host memory of all ranks on one node together.
#pragma once

#include <string>
#include <vector>

#include "ledger/report/model.h"

namespace ledger::report {

struct HostNode {
  std::string host;
  std::size_t ranks = 0;
  // Sums of the ranks' own maxima: they need not have been reached at one time, so the node had at most this.
  HostReport sum;
};

// By name.
std::vector<HostNode> HostNodesOf(const RunReport& run);

}  // namespace ledger::report
