#include "interpose/hooks/nvtx_injection.h"

#include "interpose/core/options.h"
#include "interpose/hooks/nvtx_callbacks.h"
#include "interpose/hooks/nvtx_chain.h"
#include "interpose/hooks/nvtx_environment.h"

namespace ledger::nvtx {
namespace {

int Attach(const char* entry_point, NvtxGetExportTableFunc_t get_export_table) {
  if (get_export_table == nullptr) return 0;
  ClaimInjectionPath();  // our own constructor may not have run yet
  const OtherTool other = AttachOtherTool(entry_point, get_export_table);
  const bool record = IsPreloaded() && !SwitchedOff();
  if (record && other != OtherTool::kCannotShare) InstallCallbacks(get_export_table);
  return record || other != OtherTool::kNone ? 1 : 0;  // 0: nobody is interested, and NVTX lets go of us
}

}  // namespace
}  // namespace ledger::nvtx

#define LEDGER_EXPORT extern "C" [[gnu::visibility("default")]]

LEDGER_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  return ledger::nvtx::Attach("InitializeInjectionNvtx2", get_export_table);
}

LEDGER_EXPORT int InitializeInjectionNvtx(NvtxGetExportTableFunc_t get_export_table) {
  return ledger::nvtx::Attach("InitializeInjectionNvtx", get_export_table);
}

// The extensions carry schemas and counters, which the ledger has no use for; the other tool may.
LEDGER_EXPORT int InitializeInjectionNvtxExtension(void* module_info) {
  return ledger::nvtx::AttachOtherToolToExtension(module_info);
}
