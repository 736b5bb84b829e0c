// The other NVTX tool: the one whose place the ledger took in NVTX_INJECTION64_PATH, and which it serves in its stead.
#pragma once

#include <cstdint>

#include "interpose/hooks/nvtx_types.h"

namespace ledger::nvtx {

enum class OtherTool {
  kNone,         // there is none, or it does not want this client
  kAttached,     // it has put its functions into the client's tables, and we noted which
  kCannotShare,  // it has, but others than into the clients before (counted): the client must be left to it
};

// Lets the other tool attach itself to a client. `entry_point` is the initialisation function that the client asked
// for.
OtherTool AttachOtherTool(const char* entry_point, NvtxGetExportTableFunc_t get_export_table);

// Lets the other tool attach itself to a client of NVTX's extensions. Returns what that returns.
int AttachOtherToolToExtension(void* module_info);

// What the other tool wants called for this function; null if it doesn't want it, or if there is no other tool.
NvtxFunctionPointer OtherToolsCallback(NvtxCallbackModule module, std::uint32_t callback_id);

template <typename Function>
Function OtherTools(NvtxCallbackIdCore id) {
  return reinterpret_cast<Function>(OtherToolsCallback(NVTX_CB_MODULE_CORE, static_cast<std::uint32_t>(id)));
}
template <typename Function>
Function OtherTools(NvtxCallbackIdCore2 id) {
  return reinterpret_cast<Function>(OtherToolsCallback(NVTX_CB_MODULE_CORE2, static_cast<std::uint32_t>(id)));
}

// A client's table of functions of one module; null when it has none.
struct ModuleTable {
  NvtxFunctionTable slots = nullptr;
  unsigned int size = 0;
};
ModuleTable TableOf(NvtxGetExportTableFunc_t get_export_table, NvtxCallbackModule module);

}  // namespace ledger::nvtx
