#include "interpose/torch/python_api.h"

#include <dlfcn.h>

#include <atomic>

#include "interpose/core/real_dlsym.h"

namespace ledger::python {
namespace {

enum class Search : int { kNotYet, kFound, kNothing };

constinit Api g_api = {};
constinit std::atomic<Search> g_search{Search::kNotYet};

struct Exception {
  Object* type;
  Object* value;
  Object* traceback;
};
// To be raised by the pending call; guarded by the interpreter's lock.
constinit Exception g_interrupt = {};

int RaiseAgain(void*) {
  const Exception raised = g_interrupt;
  g_interrupt = {};
  g_api.PyErr_Restore(raised.type, raised.value, raised.traceback);
  return -1;
}

}  // namespace

const Api* Find() {
  Search search = g_search.load(std::memory_order_acquire);
  if (search == Search::kNotYet) {
    // Two threads that come here at once store the same values.
    const DlsymFunction find = RealDlsym();
    bool complete = find != nullptr;
#define LEDGER_FIND(name, ...)                                             \
  if (complete) {                                                          \
    g_api.name = reinterpret_cast<__VA_ARGS__>(find(RTLD_DEFAULT, #name)); \
    complete = g_api.name != nullptr;                                      \
  }
    LEDGER_PYTHON_API(LEDGER_FIND)
#undef LEDGER_FIND
    if (!complete) dlerror();  // the program must not find our message
    search = complete ? Search::kFound : Search::kNothing;
    g_search.store(search, std::memory_order_release);
  }
  return search == Search::kFound ? &g_api : nullptr;
}

void Discard(const Api& api, Object* result) {
  if (result != nullptr) {
    api.Py_DecRef(result);
    return;
  }
  Exception raised = {};
  api.PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
  const bool interrupts = raised.type != nullptr && g_interrupt.type == nullptr &&
                          api.PyErr_GivenExceptionMatches(raised.type, *api.PyExc_Exception) == 0;
  if (interrupts) {
    g_interrupt = raised;
    if (api.Py_AddPendingCall(RaiseAgain, nullptr) == 0) return;
    g_interrupt = {};  // refused: too many are pending
  }
  api.Py_DecRef(raised.type);
  api.Py_DecRef(raised.value);
  api.Py_DecRef(raised.traceback);
}

}  // namespace ledger::python
