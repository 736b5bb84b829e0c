// A run of two ranks with something in every account, the same at every call: for golden tests.
#pragma once

#include <vector>

#include "ledger/format/test_ledger.h"

namespace ledger::report {

inline constexpr int kSampleRanks = 2;

format::TestLedger SampleRank(int rank);

}  // namespace ledger::report
