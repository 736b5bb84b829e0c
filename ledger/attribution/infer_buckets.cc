#include "ledger/attribution/infer_buckets.h"

#include <algorithm>

namespace ledger::attribution {

void InferGradientsInBuckets(const PhaseTimeline& phases, DeviceLives& lives) {
  const bool reduced = std::any_of(lives.facts.begin(), lives.facts.end(),
                                   [](const Facts& facts) { return facts.role == Role::kAllReduceBuffer; });
  if (!reduced) return;
  const auto later = [&](const Life& life) { return phases.intervals()[life.begin_phase].step != 0; };
  const bool steps = std::any_of(lives.lives.begin(), lives.lives.end(), later);
  const bool made = std::any_of(lives.lives.begin(), lives.lives.end(),
                                [&](const Life& life) { return life.category == Category::kGradient && later(life); });
  if (!steps || made) return;
  for (Life& life : lives.lives) {
    const bool bucket = life.category == Category::kCommBuffer && life.role == Role::kAllReduceBuffer;
    if (!bucket || !SpansSteps(life, phases)) continue;
    life.category = Category::kGradient;
    life.evidence = Evidence::kLifetime;
  }
}

}  // namespace ledger::attribution
