// The few functions of CPython's stable ABI that the agent needs, found in the process at run time: libledger.so is
// linked to no interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace ledger::python {

// Objects are opaque here.
struct Object;

struct MethodDef {  // PyMethodDef
  const char* name;
  Object* (*function)(Object* self, Object* const* arguments, std::intptr_t count);
  int flags;
  const char* doc;
};
inline constexpr int kFastCall = 0x0080;  // METH_FASTCALL, in the stable ABI since 3.10
inline constexpr int kFileInput = 257;    // Py_file_input

// name, type
#define LEDGER_PYTHON_API(X)                                              \
  X(Py_IsInitialized, int (*)())                                          \
  X(Py_AddPendingCall, int (*)(int (*)(void*), void*))                    \
  X(PyGILState_Ensure, int (*)())                                         \
  X(PyGILState_Release, void (*)(int))                                    \
  X(Py_IncRef, void (*)(Object*))                                         \
  X(Py_DecRef, void (*)(Object*))                                         \
  X(Py_CompileString, Object* (*)(const char*, const char*, int))         \
  X(PyEval_EvalCode, Object* (*)(Object*, Object*, Object*))              \
  X(PyEval_GetBuiltins, Object* (*)())                                    \
  X(PyImport_GetModuleDict, Object* (*)())                                \
  X(PyDict_New, Object* (*)())                                            \
  X(PyDict_GetItemString, Object* (*)(Object*, const char*))              \
  X(PyDict_GetItem, Object* (*)(Object*, Object*))                        \
  X(PyDict_SetItemString, int (*)(Object*, const char*, Object*))         \
  X(PyObject_GetAttrString, Object* (*)(Object*, const char*))            \
  X(PyObject_Call, Object* (*)(Object*, Object*, Object*))                \
  X(PyObject_CallFunctionObjArgs, Object* (*)(Object*, ...))              \
  X(PyObject_CallObject, Object* (*)(Object*, Object*))                   \
  X(PyObject_Str, Object* (*)(Object*))                                   \
  X(PyUnicode_FromStringAndSize, Object* (*)(const char*, std::intptr_t)) \
  X(PyUnicode_AsUTF8AndSize, const char* (*)(Object*, std::intptr_t*))    \
  X(PyTuple_GetItem, Object* (*)(Object*, std::intptr_t))                 \
  X(PyLong_FromVoidPtr, Object* (*)(void*))                               \
  X(PyLong_FromLong, Object* (*)(long))                                   \
  X(PyLong_AsUnsignedLongLongMask, unsigned long long (*)(Object*))       \
  X(PyCFunction_NewEx, Object* (*)(MethodDef*, Object*, Object*))         \
  X(PyExc_Exception, Object**)                                            \
  X(PyErr_Occurred, Object* (*)())                                        \
  X(PyErr_GivenExceptionMatches, int (*)(Object*, Object*))               \
  X(PyErr_Clear, void (*)())                                              \
  X(PyErr_Fetch, void (*)(Object**, Object**, Object**))                  \
  X(PyErr_Restore, void (*)(Object*, Object*, Object*))

struct Api {
#define LEDGER_DECLARE(name, ...) std::type_identity_t<__VA_ARGS__> name;
  LEDGER_PYTHON_API(LEDGER_DECLARE)
#undef LEDGER_DECLARE
};

// Null where the process has no (complete) interpreter. Looked up at the first call; needs no interpreter's lock.
const Api* Find();

// Ends a call of the agent: gives up its result, or its exception, which never shows in the program. What is no
// `Exception` is the program's own (KeyboardInterrupt, SystemExit): the handler of a signal ran inside the call. It is
// raised again as soon as the main thread, on which alone handlers run, is back in the program.
void Discard(const Api& api, Object* result);

// Keeps an exception that the program may be handling at this moment.
class ExceptionSaver {
 public:
  explicit ExceptionSaver(const Api& api) : api_(api) { api_.PyErr_Fetch(&type_, &value_, &traceback_); }
  ~ExceptionSaver() { api_.PyErr_Restore(type_, value_, traceback_); }
  ExceptionSaver(const ExceptionSaver&) = delete;
  ExceptionSaver& operator=(const ExceptionSaver&) = delete;

 private:
  const Api& api_;
  Object* type_ = nullptr;
  Object* value_ = nullptr;
  Object* traceback_ = nullptr;
};

}  // namespace ledger::python
