// Fields that many layouts have, at different places.
#pragma once

#include <cstdint>
#include <string>

#include "ledger/format/ledger_file.h"
#include "ledger/format/slot.h"

namespace ledger::replay {

// The scope of a record; 0 for layouts without one.
std::uint32_t ScopeOf(const format::Slot& slot);

// The owner, a text; 0 for layouts without one.
std::uint32_t OwnerOf(const format::Slot& slot);

// Where the program was: the phase of its step, where the agent told of phases, and the path of the record's scope.
// "step 3 backward: layers/0/attention"; "" when neither is known.
std::string PhaseAt(const format::LedgerFile& file, std::uint64_t slot);

// Is it one of the Allocation layouts?
bool IsAllocation(record::Kind kind);

}  // namespace ledger::replay
