// The report as JSON; docs/report.schema.json describes it. Bytes are bytes, times nanoseconds.
#pragma once

#include <string>

#include "ledger/report/model.h"

namespace ledger::report {

struct JsonOptions {
  bool blocks = false;  // every block that was alive at an instant
};

std::string ToJson(const RunReport& run, const JsonOptions& options);

}  // namespace ledger::report
