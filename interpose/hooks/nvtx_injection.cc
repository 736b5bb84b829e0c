#include "interpose/hooks/nvtx_injection.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose/core/options.h"
#include "interpose/hooks/nvtx_callbacks.h"
#include "interpose/hooks/nvtx_chain.h"
#include "interpose/hooks/nvtx_environment.h"
#include "interpose/hooks/nvtx_ranges.h"
#include "interpose/hooks/nvtx_types.h"
// Declares only, as nvtx_types.h has asked.
#include <nvtx3/nvToolsExtPayload.h>

namespace ledger::nvtx {
namespace {

bool Records() { return IsPreloaded() && !SwitchedOff(); }

int Attach(const char* entry_point, NvtxGetExportTableFunc_t get_export_table) {
  if (get_export_table == nullptr) return 0;
  ClaimInjectionPath();  // our own constructor may not have run yet
  const OtherTool other = AttachOtherTool(entry_point, get_export_table);
  const bool record = Records();
  if (record && other != OtherTool::kCannotShare) InstallCallbacks(get_export_table);
  return record || other != OtherTool::kNone ? 1 : 0;  // 0: nobody is interested, and NVTX lets go of us
}

// The payload extension. Its schemas and counters are of no use to the ledger, but a range may begin in the core API
// and end here: NCCL's ranges of making and ending communicators do, and whoever does not hear of their end takes all
// that follows for a part of them.
using PushOrPop = int(NVTX_API*)(nvtxDomainHandle_t, const nvtxPayloadData_t*, std::size_t);

// The other tool's functions, the same for all clients; null where it does not want them.
constinit std::atomic<PushOrPop> g_other_push{nullptr};
constinit std::atomic<PushOrPop> g_other_pop{nullptr};

int PassOn(const std::atomic<PushOrPop>& function, int level, nvtxDomainHandle_t handle,
           const nvtxPayloadData_t* payloads, std::size_t count) {
  const PushOrPop other = function.load(std::memory_order_relaxed);
  return other == nullptr ? level : other(IsOurHandle(handle) ? nullptr : handle, payloads, count);
}

int NVTX_API RangePushPayload(nvtxDomainHandle_t handle, const nvtxPayloadData_t* payloads, std::size_t count) {
  const int level = Push(DomainOf(handle), "(payload)", 0);  // such ranges have no other name
  return PassOn(g_other_push, level, handle, payloads, count);
}

int NVTX_API RangePopPayload(nvtxDomainHandle_t handle, const nvtxPayloadData_t* payloads, std::size_t count) {
  return PassOn(g_other_pop, Pop(DomainOf(handle)), handle, payloads, count);
}

void Take(const nvtxExtModuleSegment_t& segment, std::size_t slot, bool other_attached, std::atomic<PushOrPop>* other,
          PushOrPop ours) {
  constexpr std::intptr_t kUnset = 0;
  if (slot >= segment.slotCount) return;
  std::intptr_t& function = segment.functionSlots[slot];
  if (other_attached && function != kUnset) other->store(reinterpret_cast<PushOrPop>(function));
  function = reinterpret_cast<std::intptr_t>(ours);
}

int AttachToExtension(void* module_info) {
  const bool other_attached = AttachOtherToolToExtension(module_info) != 0;
  const auto* module = static_cast<const nvtxExtModuleInfo_t*>(module_info);
  if (!Records() || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID || module->segmentsCount == 0) {
    return other_attached ? 1 : 0;
  }
  Take(module->segments[0], NVTX3EXT_CBID_nvtxRangePushPayload, other_attached, &g_other_push, RangePushPayload);
  Take(module->segments[0], NVTX3EXT_CBID_nvtxRangePopPayload, other_attached, &g_other_pop, RangePopPayload);
  return 1;
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

LEDGER_EXPORT int InitializeInjectionNvtxExtension(void* module_info) {
  return ledger::nvtx::AttachToExtension(module_info);
}
