// Gradients that stay in the buckets that are reduced over ranks, where nobody names them.
#pragma once

#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"

namespace ledger::attribution {

// Works on lives that have their categories. Gradients that are views of a bucket (DDP's gradient_as_bucket_view) are
// never made anew: where no step after the first one makes any, the buckets that stay are the gradients.
void InferGradientsInBuckets(const PhaseTimeline& phases, DeviceLives& lives);

}  // namespace ledger::attribution
