// What a backward node makes for itself alone, where no scope tells of nodes.
#pragma once

#include <vector>

#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"

namespace ledger::attribution {

// By index of the life: was it made and freed in one backward, with everything that was made meanwhile gone before it,
// and nothing older freed meanwhile? A gradient that is passed on sees its node end, which gives back what the node was
// given and what it had saved, and the next node make another one.
std::vector<bool> InferScratch(const DeviceLives& lives, const PhaseTimeline& phases);

}  // namespace ledger::attribution
