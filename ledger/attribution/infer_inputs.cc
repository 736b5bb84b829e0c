#include "ledger/attribution/infer_inputs.h"

#include <algorithm>

namespace ledger::attribution {

std::vector<std::uint64_t> FirstActivations(const DeviceLives& lives, const PhaseTimeline& phases) {
  std::vector<std::uint64_t> first(phases.intervals().size(), kNever);
  for (const Life& life : lives.lives) {
    if (phases.intervals()[life.begin_phase].kind != record::PhaseKind::kForward) continue;
    if (!DiesInNextBackward(life, phases)) continue;
    first[life.begin_phase] = std::min(first[life.begin_phase], life.begin);
  }
  return first;
}

}  // namespace ledger::attribution
