// The parts of the JSON report that say who held the memory: at an instant, and phase by phase.
#pragma once

#include "ledger/report/model.h"
#include "nlohmann/json.hpp"

namespace ledger::report {

nlohmann::ordered_json PoolsJson(const std::vector<replay::PoolUse>& pools);

// `blocks`: every live block, too.
nlohmann::ordered_json InstantJson(const InstantReport& instant, bool blocks);

// Of a long run not all of them: RankReport::phases says how many there are.
nlohmann::ordered_json PhasesJson(const RankReport& rank);

}  // namespace ledger::report
