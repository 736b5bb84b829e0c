// How NVTX clients find the ledger: by the environment variable NVTX_INJECTION64_PATH, which they read at their first
// call.
#pragma once

namespace ledger::nvtx {

// Puts our own path into NVTX_INJECTION64_PATH. If another tool's path was there, it is kept in LEDGER_NVTX_NEXT.
// Runs when the library is loaded, and before that if a client is faster. Idempotent.
void ClaimInjectionPath();

// The path of the tool whose place we took; null if there is none.
const char* OtherToolsPath();

// True if the process sees our functions, that is, if we were preloaded or linked. False in a child process that lost
// LD_PRELOAD but kept the variable: NVTX opened us there, and we leave everything alone.
bool IsPreloaded();

}  // namespace ledger::nvtx
