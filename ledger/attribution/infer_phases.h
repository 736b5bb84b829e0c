// Phases of a ledger without an agent, from what threads and scopes show.
#pragma once

#include <vector>

#include "ledger/attribution/phase_timeline.h"

namespace ledger::attribution {

// Empty where no backward was seen.
//
// Backward is where a backward node runs, or where another thread than the program's first one allocates on a device:
// autograd has a thread for each device. Between two backwards lie, in this order, the optimizer's step, the end of the
// gradients, and the next forward. The step shows by the optimizer's range; without the op adapter, it ends with the
// last free of a block that was made in backward. Where none is freed, but the backward reduced gradients over ranks,
// they stay in place (buckets of DDP), and the step ends behind the last block that is there from then on; otherwise
// both backwards belong to one step (accumulation). The first forward begins behind the last block that is still alive
// when the second backward begins: what stays is parameters and buffers.
std::vector<PhaseInterval> InferPhases(const format::LedgerFile& file, const ScopeFactsTable& scopes);

}  // namespace ledger::attribution
