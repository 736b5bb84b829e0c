// The two forms of a memory hook: what gets memory (real call, then record) and what gives it back (record, then real
// call, so that an address is never seen in use again before it was given back).
#pragma once

#include "interpose/core/thread_state.h"
#include "interpose/hooks/allocation.h"
#include "interpose/hooks/entry.h"

namespace ledger::hooks {

// `describe(result)` says what was asked for and, after a success, what was got.
template <typename Function, typename Describe, typename... Arguments>
auto Allocate(const Call<Function>& call, Describe describe, Arguments... arguments) {
  HookGuard guard;
  const auto result = call.real(arguments...);
  if (guard.outermost()) NoteAllocation(call.site, static_cast<int>(result), describe(result));
  return result;
}

template <typename Function, typename... Arguments>
auto Release(const Call<Function>& call, const Piece& piece, Arguments... arguments) {
  HookGuard guard;
  const bool noted = guard.outermost() && NoteFree(call.site, piece);
  const auto result = call.real(arguments...);
  if (noted) AfterFree(call.site, static_cast<int>(result), piece);
  return result;
}

// A call that is let through, and in which nothing is recorded at a layer below.
template <typename Function, typename... Arguments>
auto PassThrough(const Call<Function>& call, Arguments... arguments) {
  HookGuard guard;
  return call.real(arguments...);
}

// Is the calling thread outside of every memory hook? In a hook itself: before its guard, or after it.
inline bool InsideNoHook() { return t_thread.hook_depth == 0; }

inline std::uint64_t AddressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace ledger::hooks
