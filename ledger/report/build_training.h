// What a report says about training, from the attribution of one rank's main device.
#pragma once

#include "ledger/attribution/attribution.h"
#include "ledger/replay/analysis.h"
#include "ledger/report/model.h"

namespace ledger::report {

// Needs rank.duration_ns.
void BuildTraining(const attribution::Attribution& attribution, const replay::DeviceAnalysis& device, RankReport& rank);

// Who held a device's memory when it ran out, and for how long they went on.
void BuildHolders(const attribution::Attribution& attribution, std::uint64_t slot, OomReport& oom);

void ShiftTraining(RankReport& rank, std::int64_t by);

ModelSummary SummarizeModel(const std::vector<RankReport>& ranks);

}  // namespace ledger::report
