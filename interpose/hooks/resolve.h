// From a caller to the real function, and from a real function to the wrapper that stands for it.
//
// A function can be reached by symbol (we are preloaded in front of the real library), by dlsym, or by asking the
// driver. By symbol, the real function is the one that the caller's own library would have been bound to: with two CUDA
// runtimes in a process, each library goes on with its own. By pointer, there is one wrapper for each distinct real
// function of an entry point, so that versions and stream variants stay apart.
#pragma once

#include <cstddef>

#include "interpose/hooks/entry.h"

namespace ledger::hooks {

// How many distinct real functions one entry point can have wrappers for: libraries may hold the driver's exported
// function, what cuGetProcAddress gave, and another runtime's.
inline constexpr int kVariants = 4;

// The wrapper of a variant (entry_exports.cc).
void* WrapperOf(Entry entry, int variant);

// The real function behind a variant; set before its wrapper is handed out.
void* RealOfVariant(Entry entry, int variant);

// The wrapper for `real`, always the same one; `real` itself where it is ours already, where there is none left
// (counted) and where it is null.
void* Wrap(Entry entry, void* real);

// The real function for a call by symbol from `caller`; nullptr: nobody has it (counted).
void* RealBySymbol(Entry entry, const void* caller);

// Is there a real function that dlsym(RTLD_DEFAULT) would have found from `caller` without us?
bool RealInScope(Entry entry, const void* caller);

// The entry with exactly this symbol; false: none.
bool FindSymbol(const char* symbol, Entry& entry);

// The entry that `real` is, if cuGetProcAddress answered a question for `name` with it; false: none of ours.
bool FindAnswer(const char* name, int version, unsigned long long flags, const void* real, Entry& entry);

// Code of libledger.so itself.
bool IsOurs(const void* code);

// NVIDIA's own tools (CUPTI, Nsight, compute-sanitizer) get what they ask for: they count on the driver's addresses.
bool IsVendorTool(const void* caller);

}  // namespace ledger::hooks
