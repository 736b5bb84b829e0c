// The report as JSON; docs/report.schema.json describes it. Bytes are bytes, times nanoseconds.
#pragma once

#include <string>

#include "ledger/report/model.h"

namespace ledger::report {

std::string ToJson(const RunReport& run);

}  // namespace ledger::report
