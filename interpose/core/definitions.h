// Texts and scopes of this process: found without a lock, added under one, written to the ledger before anybody can
// refer to them. They outlive a file: what was defined while dormant, or before a fork, is written when the next file
// opens.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/record/record.h"

namespace ledger {

// Like InternText, also while dormant.
std::uint32_t InternAlways(std::string_view text);

// The text as it is kept.
std::string_view TextOf(std::uint32_t id);

// Around the opening of the file: nothing is added meanwhile. False: the lock could not be had.
bool LockDefinitions();
void UnlockDefinitions();
// Writes everything defined so far to the file that was just opened. The lock is held.
void WriteAllDefinitions();

std::uint64_t DefinitionBytes();

// The calling thread's innermost open range, whatever modules and ops it is inside of.
std::uint32_t RangeScope();

// Modules and ops are kept elsewhere (torch/scope_frames.h): a refiner turns the scope of the thread's ranges into the
// one that CurrentScope returns. It may be called under the allocator's lock.
using ScopeRefiner = std::uint32_t (*)(std::uint32_t ranges);
void SetScopeRefiner(ScopeRefiner refiner);

// The scope for an interned name below `parent`; `parent` itself when the table is full (counted).
struct ScopeKind {
  record::Layer source;
  std::uint8_t flags;    // record::kScope...
  std::uint32_t origin;  // of a backward node
};
std::uint32_t ScopeUnder(std::uint32_t parent, const ScopeKind& kind, std::uint32_t name);

// True when more than half of the room for scopes is used.
bool ScopesAreScarce();

// In a forked child: whoever held the lock is not here.
void ResetDefinitionLock();

}  // namespace ledger
