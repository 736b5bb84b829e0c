#include "tests/programs/annotations/nvtx_client.h"

#include <nvtx3/nvToolsExt.h>

namespace {

nvtxEventAttributes_t Attributes() {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return attributes;
}

nvtxEventAttributes_t WithText(const char* text, std::uint64_t number) {
  nvtxEventAttributes_t attributes = Attributes();
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  attributes.payload.ullValue = number;
  return attributes;
}

nvtxEventAttributes_t WithString(void* string) {
  nvtxEventAttributes_t attributes = Attributes();
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = static_cast<nvtxStringHandle_t>(string);
  return attributes;
}

nvtxDomainHandle_t Handle(void* domain) { return static_cast<nvtxDomainHandle_t>(domain); }

int DomainPush(void* domain, void* string, double number) {
  nvtxEventAttributes_t attributes = WithString(string);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  attributes.payload.dValue = number;
  return nvtxDomainRangePushEx(Handle(domain), &attributes);
}

int DomainPushText(void* domain, const char* text, std::uint64_t number) {
  const nvtxEventAttributes_t attributes = WithText(text, number);
  return nvtxDomainRangePushEx(Handle(domain), &attributes);
}

std::uint64_t DomainStart(void* domain, const char* text) {
  const nvtxEventAttributes_t attributes = WithText(text, 0);
  return nvtxDomainRangeStartEx(Handle(domain), &attributes);
}

void DomainMark(void* domain, const char* text, std::uint64_t number) {
  const nvtxEventAttributes_t attributes = WithText(text, number);
  nvtxDomainMarkEx(Handle(domain), &attributes);
}

int NcclPush(void* domain, void* string, std::uint64_t schema, std::uint64_t bytes) {
  struct {
    std::uint64_t communicator;
    std::uint64_t bytes;
  } operation = {0xC0, bytes};
  struct {
    std::uint64_t schema;
    std::size_t size;
    const void* data;
  } payload = {(std::uint64_t{1} << 24) + schema, sizeof(operation), &operation};
  nvtxEventAttributes_t attributes = WithString(string);
  attributes.payloadType = static_cast<std::int32_t>(0xDFBD0009);
  attributes.reserved0 = 1;
  attributes.payload.ullValue = reinterpret_cast<std::uintptr_t>(&payload);
  return nvtxDomainRangePushEx(Handle(domain), &attributes);
}

constexpr NvtxClient kClient = {
    .push = [](const char* name) { return nvtxRangePushA(name); },
    .push_wide = [](const wchar_t* name) { return nvtxRangePushW(name); },
    .pop = [] { return nvtxRangePop(); },
    .mark = [](const char* name) { nvtxMarkA(name); },
    .start = [](const char* name) { return nvtxRangeStartA(name); },
    .end = [](std::uint64_t id) { nvtxRangeEnd(id); },
    .domain = [](const char* name) -> void* { return nvtxDomainCreateA(name); },
    .domain_wide = [](const wchar_t* name) -> void* { return nvtxDomainCreateW(name); },
    .register_string = [](void* domain, const char* text) -> void* {
      return nvtxDomainRegisterStringA(Handle(domain), text);
    },
    .register_wide_string = [](void* domain, const wchar_t* text) -> void* {
      return nvtxDomainRegisterStringW(Handle(domain), text);
    },
    .domain_push = DomainPush,
    .domain_push_text = DomainPushText,
    .domain_pop = [](void* domain) { return nvtxDomainRangePop(Handle(domain)); },
    .domain_start = DomainStart,
    .domain_end = [](void* domain, std::uint64_t id) { nvtxDomainRangeEnd(Handle(domain), id); },
    .domain_mark = DomainMark,
    .domain_destroy = [](void* domain) { nvtxDomainDestroy(Handle(domain)); },
    .nccl_push = NcclPush,
    .name_thread = [](std::uint32_t thread, const char* name) { nvtxNameOsThreadA(thread, name); },
};

#ifdef CLIENT_PUSHES_WHEN_LOADED
[[gnu::constructor]] void OnLoad() { nvtxRangePushA("early"); }
#endif

}  // namespace

extern "C" [[gnu::visibility("default")]] const NvtxClient* CLIENT_NAME() { return &kClient; }
