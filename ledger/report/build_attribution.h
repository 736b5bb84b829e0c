// Who held the memory of a rank's devices: what a report takes from the attribution of its ledger.
#pragma once

#include "ledger/replay/analysis.h"
#include "ledger/report/build.h"
#include "ledger/report/model.h"

namespace ledger::report {

// Of every device the instants, and of the main one what is said about training. Needs rank.devices and rank.main.
void Attribute(const replay::Analysis& analysis, const BuildOptions& options, RankReport& rank);

}  // namespace ledger::report
