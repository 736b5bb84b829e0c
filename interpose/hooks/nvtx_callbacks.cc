#include "interpose/hooks/nvtx_callbacks.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "interpose/hooks/nvtx_chain.h"
#include "interpose/hooks/nvtx_event.h"
#include "interpose/hooks/nvtx_names.h"
#include "interpose/hooks/nvtx_ranges.h"

namespace ledger::nvtx {
namespace {

// What the other tool gets to see instead of a handle or an id of ours: what an application passes that got none.
nvtxDomainHandle_t ForOther(nvtxDomainHandle_t handle) { return IsOurHandle(handle) ? nullptr : handle; }
nvtxRangeId_t ForOther(nvtxRangeId_t id) { return IsOurRangeId(id) ? 0 : id; }

class AttributesForOther {
 public:
  explicit AttributesForOther(const nvtxEventAttributes_t* attributes) : passed_(attributes) {
    constexpr std::size_t kUpToMessage = offsetof(nvtxEventAttributes_t, message) + sizeof(attributes->message);
    if (attributes == nullptr || attributes->size < kUpToMessage ||
        attributes->messageType != NVTX_MESSAGE_TYPE_REGISTERED || !IsOurHandle(attributes->message.registered)) {
      return;
    }
    std::memcpy(&copy_, attributes, kUpToMessage);
    copy_.size = static_cast<std::uint16_t>(kUpToMessage);
    copy_.message.registered = nullptr;
    passed_ = &copy_;
  }
  AttributesForOther(const AttributesForOther&) = delete;
  AttributesForOther& operator=(const AttributesForOther&) = delete;
  operator const nvtxEventAttributes_t*() const { return passed_; }

 private:
  nvtxEventAttributes_t copy_;
  const nvtxEventAttributes_t* passed_;
};

// The id of a process-wide range: the other tool's, as it will see it again at the end; ours, if it gave none.
template <typename... Arguments>
nvtxRangeId_t RangeId(nvtxRangeId_t (*other)(Arguments...), const std::type_identity_t<Arguments>&... arguments) {
  const nvtxRangeId_t id = other == nullptr ? 0 : other(arguments...);
  return id == 0 ? NewRangeId() : id;
}

// --- Ranges of a thread ---

int NVTX_API RangePushA(const char* message) {
  const OpName op = SplitOpName(View(message));
  const int level = Push(DomainOf(nullptr), op.name, op.sequence);
  const auto other = OtherTools<nvtxRangePushA_impl_fntype>(NVTX_CBID_CORE_RangePushA);
  return other == nullptr ? level : other(message);
}

int NVTX_API RangePushW(const wchar_t* message) {
  const int level = Push(DomainOf(nullptr), Narrow(message).view(), 0);
  const auto other = OtherTools<nvtxRangePushW_impl_fntype>(NVTX_CBID_CORE_RangePushW);
  return other == nullptr ? level : other(message);
}

int NVTX_API DomainRangePushEx(nvtxDomainHandle_t handle, const nvtxEventAttributes_t* attributes) {
  const Domain& domain = DomainOf(handle);
  const Event event(handle, domain, attributes);
  const int level = Push(domain, event.name(), event.payload());
  const auto other = OtherTools<nvtxDomainRangePushEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangePushEx);
  return other == nullptr ? level : other(ForOther(handle), AttributesForOther(attributes));
}

int NVTX_API RangePushEx(const nvtxEventAttributes_t* attributes) {
  const Event event(nullptr, DomainOf(nullptr), attributes);
  const int level = Push(DomainOf(nullptr), event.name(), event.payload());
  const auto other = OtherTools<nvtxRangePushEx_impl_fntype>(NVTX_CBID_CORE_RangePushEx);
  return other == nullptr ? level : other(AttributesForOther(attributes));
}

int NVTX_API RangePop() {
  const int level = Pop(DomainOf(nullptr));
  const auto other = OtherTools<nvtxRangePop_impl_fntype>(NVTX_CBID_CORE_RangePop);
  return other == nullptr ? level : other();
}

int NVTX_API DomainRangePop(nvtxDomainHandle_t handle) {
  const int level = Pop(DomainOf(handle));
  const auto other = OtherTools<nvtxDomainRangePop_impl_fntype>(NVTX_CBID_CORE2_DomainRangePop);
  return other == nullptr ? level : other(ForOther(handle));
}

// --- Ranges of the process ---

nvtxRangeId_t NVTX_API RangeStartA(const char* message) {
  const auto id = RangeId(OtherTools<nvtxRangeStartA_impl_fntype>(NVTX_CBID_CORE_RangeStartA), message);
  Start(DomainOf(nullptr), View(message), 0, id);
  return id;
}

nvtxRangeId_t NVTX_API RangeStartW(const wchar_t* message) {
  const auto id = RangeId(OtherTools<nvtxRangeStartW_impl_fntype>(NVTX_CBID_CORE_RangeStartW), message);
  Start(DomainOf(nullptr), Narrow(message).view(), 0, id);
  return id;
}

nvtxRangeId_t NVTX_API RangeStartEx(const nvtxEventAttributes_t* attributes) {
  const AttributesForOther for_other(attributes);
  const auto id = RangeId(OtherTools<nvtxRangeStartEx_impl_fntype>(NVTX_CBID_CORE_RangeStartEx), for_other);
  const Event event(nullptr, DomainOf(nullptr), attributes);
  Start(DomainOf(nullptr), event.name(), event.payload(), id);
  return id;
}

nvtxRangeId_t NVTX_API DomainRangeStartEx(nvtxDomainHandle_t handle, const nvtxEventAttributes_t* attributes) {
  const AttributesForOther for_other(attributes);
  const auto other = OtherTools<nvtxDomainRangeStartEx_impl_fntype>(NVTX_CBID_CORE2_DomainRangeStartEx);
  const auto id = RangeId(other, ForOther(handle), for_other);
  const Domain& domain = DomainOf(handle);
  const Event event(handle, domain, attributes);
  Start(domain, event.name(), event.payload(), id);
  return id;
}

void NVTX_API RangeEnd(nvtxRangeId_t id) {
  End(id);
  const auto other = OtherTools<nvtxRangeEnd_impl_fntype>(NVTX_CBID_CORE_RangeEnd);
  if (other != nullptr) other(ForOther(id));
}

void NVTX_API DomainRangeEnd(nvtxDomainHandle_t handle, nvtxRangeId_t id) {
  End(id);
  const auto other = OtherTools<nvtxDomainRangeEnd_impl_fntype>(NVTX_CBID_CORE2_DomainRangeEnd);
  if (other != nullptr) other(ForOther(handle), ForOther(id));
}

// --- Marks ---

void NVTX_API MarkA(const char* message) {
  Mark(DomainOf(nullptr), View(message), 0);
  const auto other = OtherTools<nvtxMarkA_impl_fntype>(NVTX_CBID_CORE_MarkA);
  if (other != nullptr) other(message);
}

void NVTX_API MarkW(const wchar_t* message) {
  Mark(DomainOf(nullptr), Narrow(message).view(), 0);
  const auto other = OtherTools<nvtxMarkW_impl_fntype>(NVTX_CBID_CORE_MarkW);
  if (other != nullptr) other(message);
}

void NVTX_API MarkEx(const nvtxEventAttributes_t* attributes) {
  const Event event(nullptr, DomainOf(nullptr), attributes);
  Mark(DomainOf(nullptr), event.name(), event.payload());
  const auto other = OtherTools<nvtxMarkEx_impl_fntype>(NVTX_CBID_CORE_MarkEx);
  if (other != nullptr) other(AttributesForOther(attributes));
}

void NVTX_API DomainMarkEx(nvtxDomainHandle_t handle, const nvtxEventAttributes_t* attributes) {
  const Domain& domain = DomainOf(handle);
  const Event event(handle, domain, attributes);
  Mark(domain, event.name(), event.payload());
  const auto other = OtherTools<nvtxDomainMarkEx_impl_fntype>(NVTX_CBID_CORE2_DomainMarkEx);
  if (other != nullptr) other(ForOther(handle), AttributesForOther(attributes));
}

// --- Domains and registered strings ---

nvtxDomainHandle_t Created(const Domain& domain, nvtxDomainHandle_t others_handle) {
  if (others_handle == nullptr) return HandleOf(domain);
  AliasDomain(others_handle, domain);
  return others_handle;
}

nvtxDomainHandle_t NVTX_API DomainCreateA(const char* name) {
  const auto other = OtherTools<nvtxDomainCreateA_impl_fntype>(NVTX_CBID_CORE2_DomainCreateA);
  return Created(DomainNamed(View(name)), other == nullptr ? nullptr : other(name));
}

nvtxDomainHandle_t NVTX_API DomainCreateW(const wchar_t* name) {
  const auto other = OtherTools<nvtxDomainCreateW_impl_fntype>(NVTX_CBID_CORE2_DomainCreateW);
  return Created(DomainNamed(Narrow(name).view()), other == nullptr ? nullptr : other(name));
}

void NVTX_API DomainDestroy(nvtxDomainHandle_t handle) {
  const auto other = OtherTools<nvtxDomainDestroy_impl_fntype>(NVTX_CBID_CORE2_DomainDestroy);
  if (other != nullptr) other(ForOther(handle));
}

nvtxStringHandle_t Registered(nvtxDomainHandle_t domain, nvtxStringHandle_t ours, nvtxStringHandle_t others_handle) {
  if (others_handle == nullptr) return ours;
  AliasString(domain, others_handle, ours);
  return others_handle;
}

nvtxStringHandle_t NVTX_API DomainRegisterStringA(nvtxDomainHandle_t handle, const char* text) {
  const auto other = OtherTools<nvtxDomainRegisterStringA_impl_fntype>(NVTX_CBID_CORE2_DomainRegisterStringA);
  return Registered(handle, RegisterString(View(text)), other == nullptr ? nullptr : other(ForOther(handle), text));
}

nvtxStringHandle_t NVTX_API DomainRegisterStringW(nvtxDomainHandle_t handle, const wchar_t* text) {
  const auto other = OtherTools<nvtxDomainRegisterStringW_impl_fntype>(NVTX_CBID_CORE2_DomainRegisterStringW);
  const Narrow narrow(text);
  return Registered(handle, RegisterString(narrow.view()), other == nullptr ? nullptr : other(ForOther(handle), text));
}

template <typename Function>
NvtxFunctionPointer Generic(Function* function) {
  return reinterpret_cast<NvtxFunctionPointer>(function);
}

struct Callback {
  NvtxCallbackModule module;
  unsigned int id;
  NvtxFunctionPointer function;
};

}  // namespace

void InstallCallbacks(NvtxGetExportTableFunc_t get_export_table) {
  const Callback callbacks[] = {
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkEx, Generic(MarkEx)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkA, Generic(MarkA)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_MarkW, Generic(MarkW)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx, Generic(RangeStartEx)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, Generic(RangeStartA)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartW, Generic(RangeStartW)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, Generic(RangeEnd)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, Generic(RangePushEx)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, Generic(RangePushA)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushW, Generic(RangePushW)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, Generic(RangePop)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainMarkEx, Generic(DomainMarkEx)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, Generic(DomainRangeStartEx)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, Generic(DomainRangeEnd)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, Generic(DomainRangePushEx)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, Generic(DomainRangePop)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, Generic(DomainRegisterStringA)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringW, Generic(DomainRegisterStringW)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, Generic(DomainCreateA)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateW, Generic(DomainCreateW)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainDestroy, Generic(DomainDestroy)},
  };
  // What we leave out (names of threads and categories, resources) stays the other tool's, or nobody's.
  for (const Callback& callback : callbacks) {
    const ModuleTable table = TableOf(get_export_table, callback.module);
    if (table.slots == nullptr || callback.id >= table.size || table.slots[callback.id] == nullptr) continue;
    *table.slots[callback.id] = callback.function;
  }
}

}  // namespace ledger::nvtx
