// Texts and scopes of this process: found without a lock, added under one, written to the ledger before anybody can refer
// to them. They outlive a file: what was defined while dormant, or before a fork, is written when the next file opens.
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

// In a forked child: whoever held the lock is not here.
void ResetDefinitionLock();

}  // namespace ledger
