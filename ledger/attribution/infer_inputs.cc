#include "ledger/attribution/infer_inputs.h"

#include <algorithm>

namespace ledger::attribution {

std::vector<std::uint64_t> FirstActivations(const DeviceLives& lives, const PhaseTimeline& phases) {
  std::vector<std::uint64_t> first(phases.intervals().size(), kNever);
  for (const Life& life : lives.lives) {
    if (phases.intervals()[life.begin_phase].kind != record::PhaseKind::kForward) continue;
    // Not only the next one: a graph may be kept for a second backward, and another model's may come first.
    const bool freed = life.end_phase != kNoPhase;
    if (!freed || phases.intervals()[life.end_phase].kind != record::PhaseKind::kBackward) continue;
    first[life.begin_phase] = std::min(first[life.begin_phase], life.begin);
  }
  return first;
}

}  // namespace ledger::attribution
