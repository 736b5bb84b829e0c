#include "interpose/torch/agent_natives.h"

#include <string_view>

#include "interpose/core/definitions.h"
#include "interpose/core/pinned_memory.h"
#include "interpose/core/recorder.h"
#include "interpose/torch/adapter_host.h"
#include "interpose/torch/layers.h"
#include "interpose/torch/module_calls.h"
#include "interpose/torch/profiler_ranges.h"
#include "interpose/torch/scope_frames.h"

namespace ledger {
namespace {

using python::Object;
using record::Kind;
using record::Layer;

constinit const python::Api* g_api = nullptr;
constinit Object* g_out_of_memory = nullptr;
constinit Object* g_pinned_memory = nullptr;
constinit Object* g_context = nullptr;
constinit Object* g_saved_wrapper = nullptr;

// The arguments of one call. A missing or wrong one reads as 0 or as the empty text: the agent is ours.
class Arguments {
 public:
  Arguments(Object* const* values, std::intptr_t count) : values_(values), count_(count) {}

  std::uint64_t Number(std::intptr_t at) const {
    return at < count_ ? g_api->PyLong_AsUnsignedLongLongMask(values_[at]) : 0;
  }
  std::uint8_t Byte(std::intptr_t at) const { return static_cast<std::uint8_t>(Number(at)); }
  const void* Identity(std::intptr_t at) const { return reinterpret_cast<const void*>(Number(at)); }
  std::string_view Text(std::intptr_t at) const {
    std::intptr_t bytes = 0;
    const char* const text = at < count_ ? g_api->PyUnicode_AsUTF8AndSize(values_[at], &bytes) : nullptr;
    return text == nullptr ? std::string_view{} : std::string_view(text, static_cast<std::size_t>(bytes));
  }
  Object* Any(std::intptr_t at) const { return at < count_ ? values_[at] : nullptr; }

 private:
  Object* const* values_;
  std::intptr_t count_;
};

// What every function returns: a number, and no exception whatever happened.
Object* Number(std::uint64_t number) {
  if (g_api->PyErr_Occurred() != nullptr) g_api->PyErr_Clear();
  return g_api->PyLong_FromLong(static_cast<long>(number));
}

record::Commit AgentCommit(Kind kind, std::int8_t device = record::kNoDevice) {
  return {static_cast<std::uint16_t>(kind), Layer::kAgent, device, 0};
}

Object* IsRecording(Object*, Object* const*, std::intptr_t) { return Number(Active() ? 1 : 0); }

Object* SeesGradients(Object*, Object* const*, std::intptr_t) { return Number(AdapterSeesGradients() ? 1 : 0); }

// text(name) → id
Object* Intern(Object*, Object* const* values, std::intptr_t count) {
  return Number(InternAlways(Arguments(values, count).Text(0)));
}

// inside_module() → 0 or 1
Object* IsInsideModule(Object*, Object* const*, std::intptr_t) { return Number(InsideModule() ? 1 : 0); }

// enter(identity, text id, flags) → 1: it is the thread's outermost one
Object* EnterModule(Object*, Object* const* values, std::intptr_t count) {
  const Arguments arguments(values, count);
  const auto flags = static_cast<std::uint8_t>(arguments.Number(2) | record::kScopeModule);
  const bool outermost = !InsideModule();
  PushFrame(FrameInfo{arguments.Identity(0), Layer::kAgent, flags}, static_cast<std::uint32_t>(arguments.Number(1)));
  return Number(outermost ? 1 : 0);
}

// take_ranges()
Object* ObserveRanges(Object*, Object* const*, std::intptr_t) {
  TakeRanges();
  return Number(0);
}

// enter_range(identity, name) → what leave_range wants
Object* EnterNamedRange(Object*, Object* const* values, std::intptr_t count) {
  const Arguments arguments(values, count);
  return Number(reinterpret_cast<std::uintptr_t>(EnterRange(arguments.Identity(0), arguments.Text(1))));
}

// leave_range(of enter_range, identity, name)
Object* LeaveNamedRange(Object*, Object* const* values, std::intptr_t count) {
  const Arguments arguments(values, count);
  if (const std::uint64_t stack = arguments.Number(0); stack != 0) {
    LeaveRange(reinterpret_cast<FrameStack*>(stack), arguments.Identity(1), arguments.Text(2));
  }
  return Number(0);
}

// phase(kind, step, text id)
Object* EnterPhase(Object*, Object* const* values, std::intptr_t count) {
  const Arguments arguments(values, count);
  record::Phase phase = {};
  phase.commit = AgentCommit(Kind::kPhase);
  phase.phase = static_cast<record::PhaseKind>(arguments.Byte(0));
  phase.step = arguments.Number(1);
  phase.text = static_cast<std::uint32_t>(arguments.Number(2));
  phase.scope = CurrentScope();
  SetWaitingScope(phase.phase == record::PhaseKind::kBackward ? phase.scope : 0);
  SetPhaseOfCalls(phase.phase);
  if (Active()) Append(phase);
  return Number(0);
}

// name(device, address, bytes, category, text, key, belongs_to, elements, element_bytes, flags)
Object* GiveName(Object*, Object* const* values, std::intptr_t count) {
  if (!Active()) return Number(0);
  const Arguments arguments(values, count);
  record::Name name = {};
  name.commit = AgentCommit(Kind::kName, static_cast<std::int8_t>(arguments.Number(0)));
  name.address = arguments.Number(1);
  name.bytes = arguments.Number(2);
  name.category = static_cast<record::NameCategory>(arguments.Byte(3));
  name.text = InternText(arguments.Text(4));
  name.key = InternText(arguments.Text(5));
  name.belongs_to = arguments.Number(6);
  name.elements = arguments.Number(7);
  name.element_bytes = arguments.Byte(8);
  name.flags = arguments.Byte(9);
  Append(name);
  return Number(1);
}

// saved(device, address, storage bytes, tensor bytes, flags)
Object* GiveSavedTensor(Object*, Object* const* values, std::intptr_t count) {
  if (!Active()) return Number(0);
  const Arguments arguments(values, count);
  record::SavedTensor saved = {};
  saved.commit = AgentCommit(Kind::kSavedTensor, static_cast<std::int8_t>(arguments.Number(0)));
  saved.address = arguments.Number(1);
  saved.storage_bytes = arguments.Number(2);
  saved.tensor_bytes = arguments.Number(3);
  saved.sequence = -1;
  saved.scope = CurrentScope();
  saved.flags = arguments.Byte(4);
  Append(saved);
  return Number(1);
}

// setting(key, value)
Object* GiveSetting(Object*, Object* const* values, std::intptr_t count) {
  const Arguments arguments(values, count);
  NoteSetting(arguments.Text(0), arguments.Text(1));
  return Number(0);
}

// Kept for good.
void Keep(Object* callable, Object** kept) {
  if (callable != nullptr) g_api->Py_IncRef(callable);
  *kept = callable;
}

// on_out_of_memory(callable)
Object* KeepOutOfMemoryCallback(Object*, Object* const* values, std::intptr_t count) {
  Keep(Arguments(values, count).Any(0), &g_out_of_memory);
  return Number(0);
}

// pinned_lately(address) → 0 or 1
Object* WasPinnedLately(Object*, Object* const* values, std::intptr_t count) {
  return Number(PinnedLately(Arguments(values, count).Number(0)) ? 1 : 0);
}

// on_pinned_memory(callable)
Object* KeepPinnedMemoryCallback(Object*, Object* const* values, std::intptr_t count) {
  Keep(Arguments(values, count).Any(0), &g_pinned_memory);
  SetPinnedObserver(RequestPinnedNames);
  return Number(0);
}

// on_context(callable): it is given the context object of each function written in Python whose node is complete
Object* KeepContextCallback(Object*, Object* const* values, std::intptr_t count) {
  Keep(Arguments(values, count).Any(0), &g_context);
  return Number(0);
}

// on_saved_wrapper(callable): it is given each tensor that a node keeps and that consists of others, and the flags
Object* KeepSavedWrapperCallback(Object*, Object* const* values, std::intptr_t count) {
  Keep(Arguments(values, count).Any(0), &g_saved_wrapper);
  return Number(0);
}

// The interpreter keeps pointers to these.
constinit python::MethodDef g_methods[] = {
    {"recording", IsRecording, python::kFastCall, nullptr},
    {"sees_gradients", SeesGradients, python::kFastCall, nullptr},
    {"text", Intern, python::kFastCall, nullptr},
    {"inside_module", IsInsideModule, python::kFastCall, nullptr},
    {"enter", EnterModule, python::kFastCall, nullptr},
    {"observe_calls", ObserveCalls, python::kFastCall, nullptr},
    {"call", CallModule, python::kFastCall, nullptr},
    {"take_ranges", ObserveRanges, python::kFastCall, nullptr},
    {"enter_range", EnterNamedRange, python::kFastCall, nullptr},
    {"leave_range", LeaveNamedRange, python::kFastCall, nullptr},
    {"phase", EnterPhase, python::kFastCall, nullptr},
    {"name", GiveName, python::kFastCall, nullptr},
    {"saved", GiveSavedTensor, python::kFastCall, nullptr},
    {"setting", GiveSetting, python::kFastCall, nullptr},
    {"on_out_of_memory", KeepOutOfMemoryCallback, python::kFastCall, nullptr},
    {"pinned_lately", WasPinnedLately, python::kFastCall, nullptr},
    {"on_pinned_memory", KeepPinnedMemoryCallback, python::kFastCall, nullptr},
    {"on_context", KeepContextCallback, python::kFastCall, nullptr},
    {"on_saved_wrapper", KeepSavedWrapperCallback, python::kFastCall, nullptr},
};

}  // namespace

python::Object* NewAgentNatives(const python::Api& api) {
  g_api = &api;
  SetScopeRefiner(RefineScope);
  Object* const natives = api.PyDict_New();
  if (natives == nullptr) return nullptr;
  for (python::MethodDef& method : g_methods) {
    Object* const function = api.PyCFunction_NewEx(&method, nullptr, nullptr);
    const bool stored = function != nullptr && api.PyDict_SetItemString(natives, method.name, function) == 0;
    if (function != nullptr) api.Py_DecRef(function);
    if (!stored) {
      api.Py_DecRef(natives);
      return nullptr;
    }
  }
  return natives;
}

python::Object* OutOfMemoryCallback() { return g_out_of_memory; }

python::Object* PinnedMemoryCallback() { return g_pinned_memory; }

void TellContext(void* context) {
  if (g_context == nullptr || context == nullptr) return;
  const python::ExceptionSaver exception_saver(*g_api);
  Object* const end = nullptr;
  python::Discard(*g_api, g_api->PyObject_CallFunctionObjArgs(g_context, static_cast<Object*>(context), end));
}

bool TellSavedWrapper(void* tensor, std::uint8_t flags) {
  if (g_saved_wrapper == nullptr || tensor == nullptr) return false;
  const int lock = g_api->PyGILState_Ensure();
  {
    const python::ExceptionSaver exception_saver(*g_api);
    Object* const end = nullptr;
    Object* const number = g_api->PyLong_FromLong(flags);
    if (number != nullptr) {
      auto* const object = static_cast<Object*>(tensor);
      python::Discard(*g_api, g_api->PyObject_CallFunctionObjArgs(g_saved_wrapper, object, number, end));
      g_api->Py_DecRef(number);
    }
  }
  g_api->PyGILState_Release(lock);
  return true;
}

}  // namespace ledger
