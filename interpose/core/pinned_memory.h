// Host memory that was pinned lately. What it was pinned for is known only above the driver, and only for a moment: the
// framework's host allocator rounds sizes up, and tells nobody what was asked for.
#pragma once

#include <cstdint>

namespace ledger {

// Memory was allocated as pinned, or registered. Has the observer called; no more than a few addresses are kept.
void NotePinned(std::uint64_t address);

// It is given back: what lies at the address from now on is something else.
void ForgetPinned(std::uint64_t address);

// Has memory been pinned that begins at this address, not long ago?
bool PinnedLately(std::uint64_t address);

// Called after each NotePinned, on any thread, possibly under locks of the framework's: it must do no more than pass
// the news on.
using PinnedObserver = void (*)();
void SetPinnedObserver(PinnedObserver observer);

}  // namespace ledger
