#include "tools/simgpu/driver/value_read.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace simgpu {
namespace {

using ValueRead = void (*)(const void*, std::size_t, const char*);

// The few functions of the interpreter that tell where a thread is. All are of CPython's stable interface or have been
// there since 3.9; a process without an interpreter has none of them.
struct Python {
  int (*is_initialized)();
  int (*is_finalizing)();  // null before 3.13: then _Py_IsFinalizing
  int (*gil_held)();
  void* (*current_frame)();
  void* (*frame_back)(void*);
  void* (*frame_code)(void*);
  int (*frame_line)(void*);
  void* (*attribute)(void*, const char*);
  const char* (*text)(void*);
  void (*clear_error)();
  void (*take)(void*);
  void (*drop)(void*);

  bool Complete() const {
    return is_initialized && gil_held && current_frame && frame_back && frame_code && frame_line && attribute && text &&
           clear_error && take && drop;
  }
};

template <typename Function>
void Resolve(Function* function, const char* name) {
  *function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

const Python& GetPython() {
  static const Python* const python = [] {
    auto* found = new Python{};
    Resolve(&found->is_initialized, "Py_IsInitialized");
    Resolve(&found->is_finalizing, "Py_IsFinalizing");
    if (found->is_finalizing == nullptr) Resolve(&found->is_finalizing, "_Py_IsFinalizing");
    Resolve(&found->gil_held, "PyGILState_Check");
    Resolve(&found->current_frame, "PyEval_GetFrame");
    Resolve(&found->frame_back, "PyFrame_GetBack");
    Resolve(&found->frame_code, "PyFrame_GetCode");
    Resolve(&found->frame_line, "PyFrame_GetLineNumber");
    Resolve(&found->attribute, "PyObject_GetAttrString");
    Resolve(&found->text, "PyUnicode_AsUTF8");
    Resolve(&found->clear_error, "PyErr_Clear");
    Resolve(&found->take, "Py_IncRef");
    Resolve(&found->drop, "Py_DecRef");
    return found;
  }();
  return *python;
}

// A code object's attribute as text; empty where there is none.
std::string TextOf(const Python& python, void* code, const char* name) {
  std::string result;
  void* value = python.attribute(code, name);
  const char* text = value == nullptr ? nullptr : python.text(value);
  if (text != nullptr) result = text;
  if (value != nullptr) python.drop(value);
  if (text == nullptr) python.clear_error();
  return result;
}

bool IsFramework(const std::string& file) {
  return file.find("-packages/torch/") != std::string::npos || file.find("<frozen") == 0 || file.find("<string>") == 0;
}

// "file.py:88 train_step" of the innermost frame outside torch. Empty: this thread runs no Python.
//
// The interpreter's lock is often not held here: torch lets it go around a copy that waits. Then it is taken, by
// PyGILState_Ensure; but only a thread that Python knows has a frame, and its own interpreter state is where it was.
std::string PythonPlace() {
  const Python& python = GetPython();
  if (!python.Complete() || python.is_initialized() == 0) return "";
  if (python.is_finalizing != nullptr && python.is_finalizing() != 0) return "";
  static auto* const ensure = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
  static auto* const release = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
  static auto* const this_thread = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  if (ensure == nullptr || release == nullptr || this_thread == nullptr || this_thread() == nullptr) return "";
  const int state = ensure();
  std::string place;
  void* frame = python.current_frame();  // borrowed
  if (frame != nullptr) python.take(frame);
  while (frame != nullptr && place.empty()) {
    void* code = python.frame_code(frame);
    const std::string file = TextOf(python, code, "co_filename");
    if (!IsFramework(file)) {
      const std::size_t slash = file.rfind('/');
      place = (slash == std::string::npos ? file : file.substr(slash + 1)) + ":" +
              std::to_string(python.frame_line(frame)) + " " + TextOf(python, code, "co_name");
    }
    python.drop(code);
    void* back = place.empty() ? python.frame_back(frame) : nullptr;
    python.drop(frame);
    frame = back;
  }
  release(state);
  return place;
}

// "library+symbol" of the code that called CUDA: the innermost frame outside the stand-ins and the C library.
std::string NativePlace() {
  void* frames[32];
  const int depth = backtrace(frames, 32);
  for (int i = 0; i < depth; ++i) {
    Dl_info info;
    if (dladdr(frames[i], &info) == 0 || info.dli_fname == nullptr) continue;
    const char* slash = std::strrchr(info.dli_fname, '/');
    const std::string library = slash == nullptr ? info.dli_fname : slash + 1;
    if (library.find("libcuda.so") == 0 || library.find("libcudart.so") == 0 || library.find("libledger") == 0)
      continue;
    return "native " + library + (info.dli_sname == nullptr ? "" : "+" + std::string(info.dli_sname));
  }
  return "native";
}

}  // namespace

void NoteValueRead(std::uintptr_t address, std::size_t bytes) {
  static auto* const tell = reinterpret_cast<ValueRead>(dlsym(RTLD_DEFAULT, "ledger_value_read"));
  if (tell == nullptr) return;
  // Finding the place may allocate and run Python, which may copy again on this thread.
  static thread_local bool inside = false;
  if (inside) return;
  inside = true;
  std::string place = PythonPlace();
  if (place.empty()) place = NativePlace();
  tell(reinterpret_cast<const void*>(address), bytes, place.c_str());
  inside = false;
}

}  // namespace simgpu
