// A symbol of a loaded library, read from its own tables: the way that is left where the C library has no versioned
// lookup.
#pragma once

namespace ledger {

// The first definition of `name` in a loaded library other than this one, in the order in which they were loaded;
// nullptr: none. Takes no allocation. Cold.
void* FindInLoadedLibraries(const char* name);

}  // namespace ledger
