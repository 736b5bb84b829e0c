// Who held a process's pinned host memory at the instant at which there was the most of it.
#pragma once

#include "ledger/format/ledger_file.h"
#include "ledger/report/training_model.h"

namespace ledger::report {

HostSheetReport BuildHostSheet(const format::LedgerFile& file);

}  // namespace ledger::report
