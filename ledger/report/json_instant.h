// The parts of the JSON report that say who held the memory: at an instant, and phase by phase.
#pragma once

#include "ledger/report/model.h"
#include "nlohmann/json.hpp"

namespace ledger::report {

// `blocks`: every live block, too.
nlohmann::ordered_json InstantJson(const InstantReport& instant, bool blocks);

nlohmann::ordered_json PhasesJson(const RankReport& rank);

}  // namespace ledger::report
