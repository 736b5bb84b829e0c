// The recorder as the hooks see it: is anything recorded, and how does a record get into the ledger.
//
// The life of a process: Dormant (nothing happened yet; no file) → Active (a CUDA call that matters was seen, the file is
// open) → Stopped (switched off, failed, or past the end). A forked child starts again at Dormant with a file of its own.
// All of this is lock-free and allocation-free on the hot path, and may be called under the allocator's lock.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/record/record.h"

namespace ledger {

// True while the process is recorded. Hooks ask this first and do nothing else when it is false.
bool Active();

// Wakes a dormant recorder (opens the file). Called by hooks of calls that matter. Cold. Returns Active().
bool Wake();

std::uint64_t Ticks();
std::uint32_t ThreadId();

// Appends a record of one of the layouts in record.h: fills `commit.thread` (and `ticks` where the caller left 0),
// reserves a slot, copies, commits. Drops and counts when the file cannot take it.
template <typename R>
void Append(R& record);

// The id of a text in this ledger; writes it first if it is new. 0 when the table is full (counted) or while dormant.
std::uint32_t InternText(std::string_view text);

// Scopes. A thread's current scope; ranges of every source push and pop here. Work while dormant, too: the definitions
// are written when the file opens. `domain` is the NVTX domain, empty for the default one and for ledger.h.
std::uint32_t CurrentScope();
std::uint32_t PushScope(record::Layer source, std::string_view domain, std::string_view name, std::uint64_t payload);
void PopScope(record::Layer source, std::string_view domain);

// The library (base name, interned) whose code contains `return_address`; the program itself has its own base name.
std::uint32_t OwnerOf(const void* return_address);

void Count(record::Loss loss);

// Guards against recording our own calls and nested layers: true inside any hook of this thread.
class HookGuard {
 public:
  HookGuard();
  ~HookGuard();
  bool outermost() const;
};

}  // namespace ledger
