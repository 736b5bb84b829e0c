#include "interpose/torch/layers.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string_view>

#include "interpose/core/line.h"
#include "interpose/core/options.h"
#include "interpose/core/recorder.h"
#include "interpose/include/ledger/ledger.h"
#include "interpose/torch/adapter_host.h"
#include "interpose/torch/agent_natives.h"
#include "interpose/torch/python_api.h"

namespace ledger {

constinit std::atomic<bool> g_layers_requested{false};

namespace {

using python::Api;
using python::ExceptionSaver;
using python::Object;

constexpr std::string_view kAgentSetting = "layer.agent";
constinit std::atomic<bool> g_layers_loaded{false};

// Runs in a namespace of its own: nothing of it shows in the program's modules, except the package itself.
constexpr char kBootstrap[] = R"(
import importlib.util, sys
spec = importlib.util.spec_from_file_location("ledger_agent", path + "/__init__.py", submodule_search_locations=[path])
module = importlib.util.module_from_spec(spec)
sys.modules["ledger_agent"] = module
spec.loader.exec_module(module)
module.start(native)
)";

bool SetText(const Api& api, Object* dict, const char* key, std::string_view text) {
  Object* const value = api.PyUnicode_FromStringAndSize(text.data(), static_cast<std::intptr_t>(text.size()));
  if (value == nullptr) return false;
  const bool stored = api.PyDict_SetItemString(dict, key, value) == 0;
  api.Py_DecRef(value);
  return stored;
}

bool RunBootstrap(const Api& api, Object* globals) {
  Object* const code = api.Py_CompileString(kBootstrap, "<libledger>", python::kFileInput);
  if (code == nullptr) return false;
  Object* const result = api.PyEval_EvalCode(code, globals, globals);
  api.Py_DecRef(code);
  if (result == nullptr) return false;
  api.Py_DecRef(result);
  return true;
}

bool StartAgent(const Api& api) {
  Object* const globals = api.PyDict_New();
  if (globals == nullptr) return false;
  Line<kMaxPathBytes> path;
  path << LibraryDirectory() << "/ledger_agent";
  Object* const natives = NewAgentNatives(api);
  const bool started = natives != nullptr &&
                       api.PyDict_SetItemString(globals, "__builtins__", api.PyEval_GetBuiltins()) == 0 &&
                       api.PyDict_SetItemString(globals, "native", natives) == 0 &&
                       SetText(api, globals, "path", path.view()) && RunBootstrap(api, globals);
  if (natives != nullptr) api.Py_DecRef(natives);
  api.Py_DecRef(globals);
  return started;
}

void NoteAgentFailure(const Api& api) {
  Object* type = nullptr;
  Object* value = nullptr;
  Object* traceback = nullptr;
  api.PyErr_Fetch(&type, &value, &traceback);
  Line<1024> reason;
  reason << "failed: ";
  Object* const text = value == nullptr ? nullptr : api.PyObject_Str(value);
  std::intptr_t bytes = 0;
  const char* const utf8 = text == nullptr ? nullptr : api.PyUnicode_AsUTF8AndSize(text, &bytes);
  reason << (utf8 == nullptr ? std::string_view("for no known reason")
                             : std::string_view(utf8, static_cast<std::size_t>(bytes)));
  NoteSetting(kAgentSetting, reason.view());
  for (Object* const object : {text, type, value, traceback}) {
    if (object != nullptr) api.Py_DecRef(object);
  }
  api.PyErr_Clear();
}

// torch.__version__ of the imported module. Returns false when there is none.
template <std::size_t kSize>
bool FrameworkVersion(const Api& api, Line<kSize>& version) {
  Object* const module = api.PyDict_GetItemString(api.PyImport_GetModuleDict(), "torch");
  Object* const value = module == nullptr ? nullptr : api.PyObject_GetAttrString(module, "__version__");
  Object* const text = value == nullptr ? nullptr : api.PyObject_Str(value);  // it may be a subclass of str
  std::intptr_t bytes = 0;
  const char* const utf8 = text == nullptr ? nullptr : api.PyUnicode_AsUTF8AndSize(text, &bytes);
  if (utf8 != nullptr) version << std::string_view(utf8, static_cast<std::size_t>(bytes));
  for (Object* const object : {value, text}) {
    if (object != nullptr) api.Py_DecRef(object);
  }
  api.PyErr_Clear();
  return utf8 != nullptr && version.view().find('/') == std::string_view::npos;
}

// With the interpreter's lock and without the allocator's. Once per process; a forked child
// inherits what its parent loaded.
void LoadLayers(const Api& api) {
  if (g_layers_loaded.exchange(true)) return;
  const ErrnoSaver errno_saver;
  const ExceptionSaver exception_saver(api);
  Line<128> version;
  if (!FrameworkVersion(api, version)) {
    NoteSetting("layer.adapter", "off: the framework says no version");
  } else if (CurrentOptions().adapter) {
    LoadAdapter(version.view());
  } else {
    NoteSetting("layer.adapter", "off: LEDGER_ADAPTER=0");
  }
  if (!CurrentOptions().agent) {
    NoteSetting(kAgentSetting, "off: LEDGER_AGENT=0");
  } else if (StartAgent(api)) {
    NoteSetting(kAgentSetting, "on");
  } else {
    NoteAgentFailure(api);
  }
}

using Call = int(void*);  // as the interpreter has pending calls

// A thread that ends while the interpreter does may be ended where it waits for the lock: no exception may be stopped
// here, and nothing is left to be destroyed.
void* CallWithLock(void* call) {
  const Api* const api = python::Find();
  const int state = api->PyGILState_Ensure();
  reinterpret_cast<Call*>(call)(nullptr);
  api->PyGILState_Release(state);
  return nullptr;
}

bool CallOnThread(Call* call) {
  // The program's signals are for the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread = {};
  const bool started = pthread_create(&thread, nullptr, CallWithLock, reinterpret_cast<void*>(call)) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) pthread_detach(thread);
  return started;
}

// Calls it soon with the interpreter's lock, which the caller need not hold. Pending calls are made by the main thread
// alone, and that may be waiting for this one, as where a program trains in a thread: then a thread of its own calls.
bool CallSoon(const Api& api, Call* call) {
  if (syscall(SYS_gettid) != getpid()) return CallOnThread(call);
  return api.Py_AddPendingCall(call, nullptr) == 0;
}

int LoadLayersPending(void*) {
  if (const Api* const api = python::Find(); api != nullptr && Active()) LoadLayers(*api);
  return 0;
}

int CallPending(Object* callback) {
  const Api* const api = python::Find();
  if (api == nullptr || callback == nullptr) return 0;
  const ExceptionSaver exception_saver(*api);
  python::Discard(*api, api->PyObject_CallObject(callback, nullptr));
  return 0;
}

int SayNamesPending(void*) { return CallPending(OutOfMemoryCallback()); }

constinit std::atomic<bool> g_pinned_names_requested{false};

int SayPinnedNamesPending(void*) {
  g_pinned_names_requested.store(false);
  return CallPending(PinnedMemoryCallback());
}

}  // namespace

void RequestLayersSlow() {
  const ErrnoSaver errno_saver;
  if (g_layers_requested.exchange(true)) return;
  const Api* const api = python::Find();
  if (api == nullptr || api->Py_IsInitialized() == 0) {
    NoteSetting(kAgentSetting, "off: no Python interpreter in this process");
    return;
  }
  // Refused when too many calls are pending: the next block tries again.
  if (!CallSoon(*api, LoadLayersPending)) g_layers_requested.store(false);
}

void RequestPinnedNames() {
  const ErrnoSaver errno_saver;
  if (g_pinned_names_requested.exchange(true)) return;
  const Api* const api = python::Find();
  if (api == nullptr || api->Py_AddPendingCall(SayPinnedNamesPending, nullptr) != 0) {
    g_pinned_names_requested.store(false);
  }
}

void RequestNames() {
  if (OutOfMemoryCallback() == nullptr) return;
  const ErrnoSaver errno_saver;
  if (const Api* const api = python::Find(); api != nullptr) CallSoon(*api, SayNamesPending);
}

}  // namespace ledger

extern "C" [[gnu::visibility("default")]] int ledger_start_layers(void) {
  const ledger::python::Api* const api = ledger::python::Find();
  if (api == nullptr || api->Py_IsInitialized() == 0 || (!ledger::Active() && !ledger::Wake())) return 0;
  ledger::g_layers_requested.store(true);
  ledger::LoadLayers(*api);
  return 1;
}
