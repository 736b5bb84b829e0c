// Gathered parameters of a sharded model, where nobody names them.
#pragma once

#include "ledger/attribution/lives.h"
#include "ledger/format/ledger_file.h"

namespace ledger::attribution {

// Marks (Facts::role) the blocks that the output of an all-gather is copied to: allocated one after the other, nothing
// in between, by the thread that gathered, while the output is alive; and together of the output's size, but for
// rounding.
void InferGathers(const format::LedgerFile& file, DeviceLives& lives);

}  // namespace ledger::attribution
