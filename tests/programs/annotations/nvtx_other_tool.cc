// Another NVTX tool, as a profiler would bring one. It wants some functions only, and prints what it sees.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// Handles and strings that only this tool can read: a stranger's handle would not survive this.
struct Object {
  unsigned magic;
  char text[60];
};
constexpr unsigned kMagic = 0x600D600Du;

const char* TextOf(const void* handle) {
  if (handle == nullptr) return "(null)";
  const auto* object = static_cast<const Object*>(handle);
  return object->magic == kMagic ? object->text : "(somebody else's handle)";
}

void* New(const char* text) {
  auto* object = new Object{kMagic, {}};
  std::snprintf(object->text, sizeof(object->text), "%s", text);
  return object;
}

int RangePushA(const char* name) {
  std::printf("tool: push %s\n", name);
  return 5;
}
nvtxRangeId_t RangeStartA(const char* name) {
  std::printf("tool: start %s\n", name);
  return 77;
}
void RangeEnd(nvtxRangeId_t id) { std::printf("tool: end %llu\n", static_cast<unsigned long long>(id)); }
nvtxDomainHandle_t DomainCreateA(const char* name) {
  std::printf("tool: domain %s\n", name);
  return static_cast<nvtxDomainHandle_t>(New(name));
}
nvtxStringHandle_t DomainRegisterStringA(nvtxDomainHandle_t domain, const char* text) {
  std::printf("tool: string %s in %s\n", text, TextOf(domain));
  return static_cast<nvtxStringHandle_t>(New(text));
}
int DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  std::printf("tool: push %s in %s\n", TextOf(attributes->message.registered), TextOf(domain));
  return 9;
}
void NameOsThreadA(uint32_t thread, const char* name) { std::printf("tool: thread %u is %s\n", thread, name); }

template <typename Function>
void Set(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module, unsigned id, Function* function) {
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) != 0 && id < size) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  }
}

}  // namespace

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table) {
  const auto& callbacks = *static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  Set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, RangePushA);
  Set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, RangeStartA);
  Set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, RangeEnd);
  Set(callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadA, NameOsThreadA);
  Set(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, DomainCreateA);
  Set(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, DomainRegisterStringA);
  Set(callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, DomainRangePushEx);
  return std::getenv("OTHER_TOOL_FAILS") == nullptr ? 1 : 0;
}
