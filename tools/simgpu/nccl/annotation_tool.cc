// A tool that NVTX loads through NVTX_INJECTION64_PATH and that keeps what it is told as text, for annotation_test.
// With ANNOTATION_TOOL_EXTENSION set it also attaches to the payload extension.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

std::string& Log() {
  static auto* const log = new std::string;
  return *log;
}

[[gnu::format(printf, 1, 2)]] void Add(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  Log() += line;
}

// Payload as the genuine library's tools see it: schema, then the 32-bit words.
void AddPayload(const nvtxPayloadData_t& payload) {
  Add(" schema %llu, %zu bytes:",
      static_cast<unsigned long long>(payload.schemaId - NVTX_PAYLOAD_SCHEMA_ID_STATIC_START), payload.size);
  const auto* words = static_cast<const unsigned*>(payload.payload);
  for (std::size_t i = 0; i < payload.size / sizeof *words; ++i) Add(" %x", words[i]);
}

// Handles are the names themselves.
nvtxDomainHandle_t DomainCreate(const char* name) {
  Add("domain %s\n", name);
  return reinterpret_cast<nvtxDomainHandle_t>(const_cast<char*>(name));
}

nvtxStringHandle_t DomainRegisterString(nvtxDomainHandle_t, const char* text) {
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<char*>(text));
}

int DomainRangePush(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const char* text = attributes->messageType == NVTX_MESSAGE_TYPE_REGISTERED
                         ? reinterpret_cast<const char*>(attributes->message.registered)
                         : "(not registered)";
  Add("%s: push %s", reinterpret_cast<const char*>(domain), text);
  if (attributes->payloadType == NVTX_PAYLOAD_TYPE_EXT) {
    const auto* payloads = reinterpret_cast<const nvtxPayloadData_t*>(attributes->payload.ullValue);
    for (int i = 0; i < attributes->reserved0; ++i) AddPayload(payloads[i]);
  }
  Add("\n");
  return 0;
}

int DomainRangePop(nvtxDomainHandle_t domain) {
  Add("%s: pop\n", reinterpret_cast<const char*>(domain));
  return 0;
}

int RangePopPayload(nvtxDomainHandle_t domain, const nvtxPayloadData_t* payloads, std::size_t count) {
  Add("%s: pop", reinterpret_cast<const char*>(domain));
  for (std::size_t i = 0; i < count; ++i) AddPayload(payloads[i]);
  Add("\n");
  return 0;
}

template <class Function>
void Set(NvtxFunctionTable table, unsigned size, unsigned id, Function function) {
  if (id < size) *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] const char* annotation_tool_log() { return Log().c_str(); }

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  Set(table, size, NVTX_CBID_CORE2_DomainCreateA, DomainCreate);
  Set(table, size, NVTX_CBID_CORE2_DomainRegisterStringA, DomainRegisterString);
  Set(table, size, NVTX_CBID_CORE2_DomainRangePushEx, DomainRangePush);
  Set(table, size, NVTX_CBID_CORE2_DomainRangePop, DomainRangePop);
  return 1;
}

extern "C" [[gnu::visibility("default")]] int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module) {
  if (std::getenv("ANNOTATION_TOOL_EXTENSION") == nullptr || module->moduleId != NVTX_EXT_PAYLOAD_MODULEID) return 0;
  module->segments->functionSlots[NVTX3EXT_CBID_nvtxRangePopPayload] = reinterpret_cast<intptr_t>(RangePopPayload);
  return 1;
}
