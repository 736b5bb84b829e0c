// The entry points of entry_points.inc as an enumeration, and what a hook is told about the call it stands in for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/core/cuda_headers.h"
#include "interpose/record/record.h"

namespace ledger::hooks {

enum class Entry : std::uint16_t {
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types) symbol,
#define LEDGER_RUNTIME(symbol, hook, arity, types) symbol,
#define LEDGER_CUBLAS(symbol, hook, arity, types) symbol,
#include "interpose/hooks/entry_points.inc"
#undef LEDGER_DRIVER
#undef LEDGER_RUNTIME
#undef LEDGER_CUBLAS
  kCount
};
inline constexpr std::size_t kEntryCount = static_cast<std::size_t>(Entry::kCount);
constexpr std::size_t Index(Entry entry) { return static_cast<std::size_t>(entry); }

enum class Library : std::uint8_t { kDriver, kRuntime, kCublas };

struct EntryInfo {
  const char* symbol;
  const char* name;  // what cuGetProcAddress calls it; nullptr: not a driver's
  int since;
  Library library;
  record::Layer layer;
  bool per_thread;  // its null stream is the thread's own
};
extern const EntryInfo kEntries[kEntryCount];
inline const EntryInfo& InfoOf(Entry entry) { return kEntries[Index(entry)]; }

// Where a call comes from: the return address in the caller's code, and which entry point was called.
struct Site {
  const void* caller;
  Entry entry;
};

// What a hook gets in front of the call's own arguments. `real` is the function that the caller would have reached
// without us; it is never null.
template <typename Function>
struct Call {
  Function real;
  Site site;
};

}  // namespace ledger::hooks
