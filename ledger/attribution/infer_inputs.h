// Where the batch of data ends and the forward begins, where no phase tells.
#pragma once

#include <cstdint>
#include <vector>

#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"

namespace ledger::attribution {

// By interval: the slot of the first allocation that a backward frees, in an interval that is a forward; kNever:
// none. What an inferred forward makes before it is a batch of data.
std::vector<std::uint64_t> FirstActivations(const DeviceLives& lives, const PhaseTimeline& phases);

}  // namespace ledger::attribution
