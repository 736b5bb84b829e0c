#include "interpose/torch/module_calls.h"

#include <atomic>

#include "interpose/torch/scope_frames.h"

namespace ledger {
namespace {

using python::Api;
using python::Object;
using record::PhaseKind;

// Written once, with the interpreter's lock; kept for good.
struct Callables {
  Object* original;
  Object* names;
  Object* unknown;
  Object* root_enters;
  Object* root_leaves;
};
constinit Callables g_callables = {};
constinit std::atomic<PhaseKind> g_phase{PhaseKind::kSetup};

// The text id of a module that has its place in a model; false where it has not.
bool FindName(const Api& api, Object* module, std::uint32_t* text) {
  Object* const key = api.PyLong_FromVoidPtr(module);
  if (key == nullptr) {
    api.PyErr_Clear();
    return false;
  }
  Object* const value = api.PyDict_GetItem(g_callables.names, key);  // borrowed
  if (value != nullptr) *text = static_cast<std::uint32_t>(api.PyLong_AsUnsignedLongLongMask(value));
  api.Py_DecRef(key);
  return value != nullptr;
}

void Enter(const Api& api, Object* module, Object* arguments, Object* options) {
  Object* const null = nullptr;  // ends the list of arguments
  std::uint32_t text = 0;
  if (g_phase.load(std::memory_order_relaxed) == PhaseKind::kBackward || !FindName(api, module, &text)) {
    python::Discard(api, api.PyObject_CallFunctionObjArgs(g_callables.unknown, module, arguments, options, null));
    return;
  }
  const bool outermost = !InsideModule();
  PushFrame(FrameInfo{module, record::Layer::kAgent, record::kScopeModule}, text);
  if (outermost) {
    python::Discard(api, api.PyObject_CallFunctionObjArgs(g_callables.root_enters, module, arguments, options, null));
  }
}

void Leave(const Api& api, Object* module) {
  const bool inside = InsideModule();
  PopFrame(module);
  if (!inside || InsideModule() || g_phase.load(std::memory_order_relaxed) != PhaseKind::kEvaluation) return;
  const python::ExceptionSaver exception_saver(api);  // the call may have raised
  python::Discard(api, api.PyObject_CallObject(g_callables.root_leaves, nullptr));
}

}  // namespace

Object* ObserveCalls(Object*, Object* const* values, std::intptr_t count) {
  const Api& api = *python::Find();
  constexpr std::intptr_t kCount = 5;
  if (count == kCount && g_callables.original == nullptr) {
    for (std::intptr_t i = 0; i < kCount; ++i) api.Py_IncRef(values[i]);
    g_callables = {values[0], values[1], values[2], values[3], values[4]};
  }
  return api.PyLong_FromLong(0);
}

Object* CallModule(Object*, Object* const* values, std::intptr_t) {
  const Api& api = *python::Find();
  Object* const arguments = values[0];
  Object* const options = values[1];
  Object* const module = api.PyTuple_GetItem(arguments, 0);  // borrowed; the tuple outlives the call
  if (module == nullptr) return nullptr;                     // called without a module: Python's own exception
  Enter(api, module, arguments, options);
  Object* const result = api.PyObject_Call(g_callables.original, arguments, options);
  Leave(api, module);
  return result;
}

void SetPhaseOfCalls(PhaseKind phase) { g_phase.store(phase, std::memory_order_relaxed); }

}  // namespace ledger
