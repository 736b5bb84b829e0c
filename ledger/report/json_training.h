// The parts of the JSON report that are about training.
#pragma once

#include "ledger/report/model.h"
#include "nlohmann/json.hpp"

namespace ledger::report {

// Adds the keys communication, gathered, model_state, steps and growth to a rank.
void AddTraining(const RankReport& rank, const ModelSummary& model, nlohmann::ordered_json& json);

nlohmann::ordered_json ModelSummaryJson(const ModelSummary& model);

nlohmann::ordered_json HoldersJson(const OomReport& oom);

nlohmann::ordered_json HostMemoryJson(const HostReport& host);
// Of all ranks of each host together.
nlohmann::ordered_json HostsJson(const RunReport& run);

}  // namespace ledger::report
