// The part of the report for people that is about training: the model's state, what sharding adds for moments,
// communication, and how memory went from step to step. One rank's, in detail.
#pragma once

#include <string>

#include "ledger/report/model.h"

namespace ledger::report {

// First step against later ones, and what keeps growing.
std::string StepsText(const RankReport& rank);

std::string ModelStateText(const RunReport& run, const RankReport& rank);

std::string GatheredText(const RankReport& rank);

std::string CommunicationText(const RankReport& rank);

}  // namespace ledger::report
