// Asks a driver for functions by (name, version, kind of default stream), through every way there is, calls what it
// gets, and prints what happened: the output must be the same with and without libledger.so. Pointers are printed as
// the order in which they were first seen, so that it also shows which answers are the same function.
#include <dlfcn.h>

#include <cstdio>
#include <initializer_list>
#include <map>
#include <string>

#include "interpose/core/cuda_headers.h"

namespace {

using LookV1 = CUresult (*)(const char*, void**, int, cuuint64_t);
using LookV2 = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
using LastCalled = const char* (*)();
// Enough null arguments for any of them, on any calling convention in registers.
using AnyFunction = CUresult (*)(void*, void*, void*, void*, void*, void*, void*, void*);

// Answers that are look-ups themselves would look up.
constexpr const char* kNames[] = {
    "cuMemAlloc",    "cuMemFree",        "cuMemAllocAsync",           "cuMemFreeAsync",
    "cuCtxCreate",   "cuCtxDestroy",     "cuMemHostRegister",         "cuIpcOpenMemHandle",
    "cuMemCreate",   "cuMemRelease",     "cuMulticastCreate",         "cuStreamBeginCapture",
    "cuArrayCreate", "cuModuleLoadData", "cuDevicePrimaryCtxRelease", "cuNoSuchFunction"};
constexpr int kVersions[] = {2000, 4010, 10000, 11000, 11030, 11040, 12000, 12090, 13000, 13030};
constexpr int kFlags[] = {0, 1, 2};

void* g_driver = nullptr;
LastCalled g_last_called = nullptr;
std::map<void*, int> g_seen;

int OrderOf(void* pointer) {
  if (pointer == nullptr) return 0;
  return g_seen.try_emplace(pointer, static_cast<int>(g_seen.size()) + 1).first->second;
}

std::string Reached(void* function) {
  if (function == nullptr) return "-";
  reinterpret_cast<AnyFunction>(function)(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  return g_last_called();
}

void Ask(const char* way, LookV1 v1, LookV2 v2) {
  for (const char* name : kNames) {
    for (int version : kVersions) {
      for (int flags : kFlags) {
        void* answer = reinterpret_cast<void*>(0x5A5A);  // what a failing call leaves in it shows as well
        int status = -1;
        const CUresult result = v2 != nullptr ? v2(name, &answer, version, static_cast<cuuint64_t>(flags),
                                                   reinterpret_cast<CUdriverProcAddressQueryResult*>(&status))
                                              : v1(name, &answer, version, static_cast<cuuint64_t>(flags));
        std::printf("%s %s %d %d: result %d status %d", way, name, version, flags, result, status);
        if (result == CUDA_SUCCESS) {
          std::printf(" function %d", OrderOf(answer));
          std::printf(" reaches %s\n", Reached(answer).c_str());
        } else {
          std::printf(" leaves %p\n", answer);
        }
      }
    }
  }
}

// A look-up for the look-up itself.
void* Nested(LookV1 v1, LookV2 v2, int version) {
  void* answer = nullptr;
  CUdriverProcAddressQueryResult status;
  const CUresult result = v2 != nullptr ? v2("cuGetProcAddress", &answer, version, 0, &status)
                                        : v1("cuGetProcAddress", &answer, version, 0);
  std::printf("nested %d: result %d %s\n", version, result, answer == nullptr ? "null" : "function");
  return answer;
}

}  // namespace

int main() {
  g_driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (g_driver == nullptr) {
    std::fprintf(stderr, "resolve_matrix: %s\n", dlerror());
    return 1;
  }
  g_last_called = reinterpret_cast<LastCalled>(dlsym(g_driver, "FakeLastCalled"));
  const auto hide = reinterpret_cast<void (*)(int)>(dlsym(g_driver, "FakeHide"));
  for (int hidden : {0, 1}) {
    hide(hidden);
    std::printf("hidden %d\n", hidden);
    const auto v1 = reinterpret_cast<LookV1>(dlsym(g_driver, "cuGetProcAddress"));
    const auto v2 = reinterpret_cast<LookV2>(dlsym(g_driver, "cuGetProcAddress_v2"));
    std::printf("v2 is %s\n", v2 == nullptr ? "missing" : "there");
    Ask("v1", v1, nullptr);
    if (v2 != nullptr) {
      Ask("v2", nullptr, v2);
      Ask("nested v1", reinterpret_cast<LookV1>(Nested(nullptr, v2, 11030)), nullptr);
      Ask("nested v2", nullptr, reinterpret_cast<LookV2>(Nested(nullptr, v2, 12000)));
    } else {
      // An old driver answers a new version with what it has: the four-argument function.
      Ask("nested v1", reinterpret_cast<LookV1>(Nested(v1, nullptr, 12000)), nullptr);
    }
  }
  for (const char* symbol :
       {"cuMemAlloc_v2", "cuMemFree_v2", "cuCtxCreate_v2", "cuCtxCreate_v4", "cuMemAlloc", "cuMemAllocAsync_ptsz"}) {
    void* const first = dlsym(g_driver, symbol);
    void* const second = dlsym(g_driver, symbol);
    std::printf("dlsym %s: %s, %s", symbol, first == nullptr ? "null" : "function",
                first == second ? "stable" : "changing");
    std::printf(" reaches %s\n",
                first == nullptr || std::string(symbol) == "cuMemAlloc" ? "-" : Reached(first).c_str());
  }
  return 0;
}
