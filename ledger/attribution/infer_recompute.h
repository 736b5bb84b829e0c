// Forward code that runs again inside backward (activation checkpointing), where no scope tells of it.
#pragma once

#include <cstdint>
#include <vector>

#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"

namespace ledger::attribution {

enum class Recompute : std::uint8_t {
  kNo,
  kValue,    // alive when the run of recomputation ends: backward needs it
  kScratch,  // made and gone inside of it
};

// By index of the life. A run of recomputation asks for the same sizes in the same order as the forward before it; what
// backward itself computes comes in the opposite order. So blocks of a backward are recomputed where kRecomputeRun of
// them or more in a row have the sizes of as many in that forward, at least three different ones among them.
std::vector<Recompute> InferRecompute(const DeviceLives& lives, const PhaseTimeline& phases);

inline constexpr std::size_t kRecomputeRun = 6;

}  // namespace ledger::attribution
