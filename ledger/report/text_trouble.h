// The parts of the report for people about host memory and about allocations that failed.
#pragma once

#include <string>

#include "ledger/report/model.h"

namespace ledger::report {

std::string HostText(const RunReport& run);

std::string OutOfMemoryText(const RunReport& run);

std::string FailedAllocationsText(const RunReport& run);

}  // namespace ledger::report
