// Fields that many layouts have, at different places.
#pragma once

#include <cstdint>

#include "ledger/format/slot.h"

namespace ledger::replay {

// The scope of a record; 0 for layouts without one.
std::uint32_t ScopeOf(const format::Slot& slot);

// The owner, a text; 0 for layouts without one.
std::uint32_t OwnerOf(const format::Slot& slot);

// Is it one of the Allocation layouts?
bool IsAllocation(record::Kind kind);

}  // namespace ledger::replay
