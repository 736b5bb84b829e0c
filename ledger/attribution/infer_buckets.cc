#include "ledger/attribution/infer_buckets.h"

#include <algorithm>
#include <cstdint>

namespace ledger::attribution {
namespace {

std::uint64_t StepOf(const PhaseTimeline& phases, const Life& life) {
  return phases.intervals()[life.begin_phase].step;
}

bool IsThereALaterStep(const PhaseTimeline& phases, const DeviceLives& lives) {
  return !lives.lives.empty() && StepOf(phases, lives.lives.back()) != 0;
}

// In more than one later step, where there are more: an optimizer that steps inside of backward makes its state there.
bool MakesGradientsAnew(const PhaseTimeline& phases, const DeviceLives& lives) {
  const bool several = StepOf(phases, lives.lives.back()) > 1;
  std::uint64_t first = 0;  // later step with gradients
  for (const Life& life : lives.lives) {
    const std::uint64_t step = StepOf(phases, life);
    if (life.category != Category::kGradient || step == 0 || step == first) continue;
    if (!several || first != 0) return true;
    first = step;
  }
  return false;
}

}  // namespace

void InferGradientsInBuckets(const PhaseTimeline& phases, DeviceLives& lives) {
  const bool reduced = std::any_of(lives.facts.begin(), lives.facts.end(),
                                   [](const Facts& facts) { return facts.role == Role::kAllReduceBuffer; });
  if (!reduced) return;
  if (!IsThereALaterStep(phases, lives) || MakesGradientsAnew(phases, lives)) return;
  for (Life& life : lives.lives) {
    const bool bucket = life.category == Category::kCommBuffer && life.role == Role::kAllReduceBuffer;
    if (!bucket || !SpansSteps(life, phases)) continue;
    life.category = Category::kGradient;
    life.evidence = Evidence::kLifetime;
  }
}

}  // namespace ledger::attribution
