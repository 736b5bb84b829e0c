#pragma once

namespace ledger::adapter {

// Says where the gradient lies that the node which runs on this thread, an AccumulateGrad, has just stored or added to.
void RecordGradient();

}  // namespace ledger::adapter
