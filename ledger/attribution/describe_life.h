// What to call a block in a report.
#pragma once

#include <string>

#include "ledger/attribution/classify.h"
#include "ledger/attribution/lives.h"

namespace ledger::attribution {

// The fully qualified name of what lies there, with the key of optimizer state: "layers.0.weight exp_avg"; what the
// program said of it; "" where it has none.
std::string NameOf(const Grounds& grounds, const DeviceLives& lives, const Life& life);

// The module whose forward or backward allocated it, or to which what is named belongs; "" outside of modules.
std::string ModuleOf(const Grounds& grounds, const DeviceLives& lives, const Life& life);

// The op or backward node; "" where it is not known.
std::string OpOf(const Grounds& grounds, const Life& life);

// What a report groups members of a category by: the name, or module and op, or range, or library.
std::string MemberOf(const Grounds& grounds, const DeviceLives& lives, const Life& life);

}  // namespace ledger::attribution
