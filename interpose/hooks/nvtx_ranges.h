// What the ledger does with ranges and marks, whichever way they came.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/hooks/nvtx_names.h"

namespace ledger::nvtx {

// Push and pop return the level of the range, from 0, as NVTX wants it: of this thread and this domain.
// kLevelUnknown: not kept for this domain. Negative as well for a pop without a push.
inline constexpr int kLevelUnknown = -2;  // NVTX_NO_PUSH_POP_TRACKING
int Push(const Domain& domain, std::string_view name, std::uint64_t payload);
int Pop(const Domain& domain);

void Mark(const Domain& domain, std::string_view name, std::uint64_t payload);

// Process-wide ranges: started and ended on any two threads. Ids are never reused in a process, and are told from those
// of other tools by their highest bit.
nvtxRangeId_t NewRangeId();
inline bool IsOurRangeId(nvtxRangeId_t id) { return (id >> 63) != 0; }
void Start(const Domain& domain, std::string_view name, std::uint64_t payload, nvtxRangeId_t id);
void End(nvtxRangeId_t id);

// How many calls of the five above this thread has made: how the entry points of the old library see whether a call
// that they passed on has come back to us as a callback.
std::uint32_t CallsOfThisThread();

}  // namespace ledger::nvtx
