#include "ledger/replay/identity.h"

#include <algorithm>

namespace ledger::replay {

bool AllHold(const std::vector<Identity>& identities) {
  return std::all_of(identities.begin(), identities.end(), [](const Identity& i) { return i.holds; });
}

}  // namespace ledger::replay
