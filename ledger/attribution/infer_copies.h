// Copies of the weights that nothing trains (averages, a teacher), where nobody names them.
#pragma once

#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"

namespace ledger::attribution {

// Works on lives that have their categories. What was made before the first step and stays is taken for parameters. Of
// each size that gradients have, there are as many parameters as gradients; where there are twice as many or more of
// every such size, the model is there more than once, and what was made later is a copy. A large block may be up to a
// mebibyte larger than what was asked for: large sizes count together where none lies further from the next, and their
// number must be the same multiple everywhere. Sizes that no gradient has say nothing: such weights may be frozen.
void InferCopies(const PhaseTimeline& phases, DeviceLives& lives);

}  // namespace ledger::attribution
