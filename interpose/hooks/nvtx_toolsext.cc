// The functions of libnvToolsExt.so.1 (NVTX 2), for programs that link against it, and for libraries that export them.
//
// Such a library usually has us for a tool, and calls us back. If it has not (an old one, or one that was started
// before the environment variable was there), the call is recorded here. If there is no such library at all, the
// program has found us by dlsym, and we do its work.
#include <type_traits>

#include "interpose/hooks/nvtx_event.h"
#include "interpose/hooks/nvtx_names.h"
#include "interpose/hooks/nvtx_ranges.h"
#include "interpose/hooks/nvtx_types.h"
#include "interpose/hooks/real_function.h"

namespace ledger::nvtx {
namespace {

class Function {
 public:
  constexpr explicit Function(const char* name) : real_(name, "libnvToolsExt.so.1") {}

  // Calls the real function; then `record` with its result, unless that has come back as a callback. `none` is the
  // result where there is no real function. `record` says what the program gets.
  template <typename Answer, typename Record, typename... Arguments>
  Answer Call(const void* caller, Answer none, Record record, Arguments... arguments) {
    auto* const real = real_.For<Answer(Arguments...)>(caller);
    if (real == nullptr) return record(none);
    const std::uint32_t calls = CallsOfThisThread();
    const Answer answer = real(arguments...);
    return CallsOfThisThread() == calls ? record(answer) : answer;
  }

  template <typename Record, typename... Arguments>
  void CallVoid(const void* caller, Record record, Arguments... arguments) {
    auto* const real = real_.For<void(Arguments...)>(caller);
    const std::uint32_t calls = CallsOfThisThread();
    if (real != nullptr) real(arguments...);
    if (CallsOfThisThread() == calls) record();
  }

 private:
  RealFunction real_;
};

const Domain& DefaultDomain() { return DomainOf(nullptr); }

// A real function without a tool says that it keeps no levels; then ours is as good as any.
auto Pushed(std::string_view name, std::uint64_t payload) {
  return [=](int level) {
    const int ours = Push(DefaultDomain(), name, payload);
    return level >= 0 ? level : ours;
  };
}

auto Started(std::string_view name, std::uint64_t payload) {
  return [=](nvtxRangeId_t id) {
    if (id == 0) id = NewRangeId();
    Start(DefaultDomain(), name, payload, id);
    return id;
  };
}

auto Marked(std::string_view name, std::uint64_t payload) {
  return [=] { Mark(DefaultDomain(), name, payload); };
}

}  // namespace

#define LEDGER_NVTX(type, name)              \
  static constinit Function g_##name{#name}; \
  extern "C" [[gnu::visibility("default")]] type name
#define LEDGER_CALLER __builtin_return_address(0)

LEDGER_NVTX(int, nvtxRangePushA)(const char* message) {
  const OpName op = SplitOpName(View(message));
  return g_nvtxRangePushA.Call(LEDGER_CALLER, kLevelUnknown, Pushed(op.name, op.sequence), message);
}

LEDGER_NVTX(int, nvtxRangePushW)(const wchar_t* message) {
  const Narrow narrow(message);
  return g_nvtxRangePushW.Call(LEDGER_CALLER, kLevelUnknown, Pushed(narrow.view(), 0), message);
}

LEDGER_NVTX(int, nvtxRangePushEx)(const nvtxEventAttributes_t* attributes) {
  const Event event(nullptr, DefaultDomain(), attributes);
  return g_nvtxRangePushEx.Call(LEDGER_CALLER, kLevelUnknown, Pushed(event.name(), event.payload()), attributes);
}

LEDGER_NVTX(int, nvtxRangePop)(void) {
  return g_nvtxRangePop.Call(LEDGER_CALLER, kLevelUnknown, [](int level) {
    const int ours = Pop(DefaultDomain());
    return level >= 0 ? level : ours;
  });
}

LEDGER_NVTX(nvtxRangeId_t, nvtxRangeStartA)(const char* message) {
  return g_nvtxRangeStartA.Call(LEDGER_CALLER, nvtxRangeId_t{0}, Started(View(message), 0), message);
}

LEDGER_NVTX(nvtxRangeId_t, nvtxRangeStartW)(const wchar_t* message) {
  const Narrow narrow(message);
  return g_nvtxRangeStartW.Call(LEDGER_CALLER, nvtxRangeId_t{0}, Started(narrow.view(), 0), message);
}

LEDGER_NVTX(nvtxRangeId_t, nvtxRangeStartEx)(const nvtxEventAttributes_t* attributes) {
  const Event event(nullptr, DefaultDomain(), attributes);
  return g_nvtxRangeStartEx.Call(LEDGER_CALLER, nvtxRangeId_t{0}, Started(event.name(), event.payload()), attributes);
}

LEDGER_NVTX(void, nvtxRangeEnd)(nvtxRangeId_t id) {
  g_nvtxRangeEnd.CallVoid(
      LEDGER_CALLER, [=] { End(id); }, id);
}

LEDGER_NVTX(void, nvtxMarkA)(const char* message) {
  g_nvtxMarkA.CallVoid(LEDGER_CALLER, Marked(View(message), 0), message);
}

LEDGER_NVTX(void, nvtxMarkW)(const wchar_t* message) {
  const Narrow narrow(message);
  g_nvtxMarkW.CallVoid(LEDGER_CALLER, Marked(narrow.view(), 0), message);
}

LEDGER_NVTX(void, nvtxMarkEx)(const nvtxEventAttributes_t* attributes) {
  const Event event(nullptr, DefaultDomain(), attributes);
  g_nvtxMarkEx.CallVoid(LEDGER_CALLER, Marked(event.name(), event.payload()), attributes);
}

}  // namespace ledger::nvtx
