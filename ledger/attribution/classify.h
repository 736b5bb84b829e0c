// Gives every life its category, by the strongest evidence that there is.
#pragma once

#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"
#include "ledger/attribution/scope_facts.h"
#include "ledger/format/ledger_file.h"

namespace ledger::attribution {

// What all lives of a ledger are judged by.
struct Grounds {
  const format::LedgerFile& file;
  const ScopeFactsTable& scopes;
  const PhaseTimeline& phases;
};

// Fills in category, evidence and role.
void Classify(const Grounds& grounds, DeviceLives& lives);

}  // namespace ledger::attribution
