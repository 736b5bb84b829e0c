#include "ledger/attribution/infer_scratch.h"

#include <cstdint>

namespace ledger::attribution {

std::vector<bool> InferScratch(const DeviceLives& lives, const PhaseTimeline& phases) {
  std::vector<bool> scratch(lives.lives.size());
  std::vector<std::uint64_t> open;  // lives of the backward that runs, of which nothing speaks against it; by begin
  std::uint32_t backward = kNoPhase;
  for (const std::uint64_t event : lives.events) {
    const std::uint64_t life = event >> 1;
    const bool end = (event & 1) != 0;
    const std::uint32_t phase = end ? lives.lives[life].end_phase : lives.lives[life].begin_phase;
    if (phase != backward) {
      if (phases.intervals()[phase].kind != record::PhaseKind::kBackward) continue;
      open.clear();
      backward = phase;
    }
    if (!end) {
      open.push_back(life);
    } else if (!open.empty() && open.back() == life) {
      scratch[life] = true;
      open.pop_back();
    } else {  // those behind it have seen it go, and it leaves some of them
      while (!open.empty() && open.back() >= life) open.pop_back();
    }
  }
  return scratch;
}

}  // namespace ledger::attribution
