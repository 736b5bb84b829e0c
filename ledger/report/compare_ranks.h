// Which rank is highest, and by what it differs from the lowest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/report/model.h"

namespace ledger::report {

struct Difference {
  std::string what;        // a site or an account
  std::int64_t bytes = 0;  // of the highest rank beyond the lowest's
};

struct RankComparison {
  int highest = -1, lowest = -1;  // ranks; -1 when there are no peaks
  std::uint64_t highest_bytes = 0, lowest_bytes = 0;
  std::vector<Difference> differences;  // largest first, the first few
};

// By the allocated peak and its sites, or by the device's peak and its accounts.
RankComparison CompareAllocated(const RunReport& run);
RankComparison CompareDevice(const RunReport& run);

}  // namespace ledger::report
