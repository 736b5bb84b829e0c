// The loader's own dlsym: ours is in front of it.
#pragma once

namespace ledger {

using DlsymFunction = void* (*)(void* handle, const char* name);

// Found at the first call, without allocation; other libraries' constructors may ask before ours has run. nullptr:
// there is none (a C library without versioned lookup).
DlsymFunction RealDlsym();

// A symbol of an already loaded library, by SONAME; nullptr where it is not loaded. Never loads anything.
void* SymbolOfLoaded(const char* soname, const char* symbol);

}  // namespace ledger
