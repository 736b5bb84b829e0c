// A driver that does nothing and says who was called: every entry point of libledger's table, by symbol and through
// cuGetProcAddress, under the same rules as the genuine one's. Built twice: as a current driver, and (OLD_DRIVER) as
// one of CUDA 11.8, without cuGetProcAddress_v2 and without what came later.
#include <cstring>
#include <string_view>

#include "interpose/core/cuda_headers.h"

namespace {

#ifdef OLD_DRIVER
constexpr int kVersion = 11080;
#else
constexpr int kVersion = 13000;
#endif

const char* g_last_called = "";
// Answers with functions that are not the exported ones, as a driver may.
bool g_hide = false;

struct Row {
  const char* symbol;
  const char* name;
  int since;
  void* exported;
  void* hidden;
};

#define LEDGER_RUNTIME(...)
#define LEDGER_CUBLAS(...)
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types) \
  CUresult Hidden_##symbol types;                              \
  extern "C" CUresult symbol types;
#include "interpose/hooks/entry_points.inc"
#undef LEDGER_DRIVER

const Row kRows[] = {
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types) \
  {#symbol, name, since, reinterpret_cast<void*>(&::symbol), reinterpret_cast<void*>(&Hidden_##symbol)},
#include "interpose/hooks/entry_points.inc"
#undef LEDGER_DRIVER
};

bool IsPerThread(const Row& row) { return std::string_view(row.symbol).ends_with("_ptsz"); }

// The newest that is not newer than the caller's version; of the names that have two kinds, the caller's kind.
const Row* Newest(const char* name, int version, bool per_thread) {
  const Row* best = nullptr;
  for (const Row& row : kRows) {
    if (row.since > kVersion || row.since > version || std::strcmp(row.name, name) != 0) continue;
    if (IsPerThread(row) == per_thread && (best == nullptr || row.since > best->since)) best = &row;
  }
  return best;
}

bool IsKnown(const char* name) { return Newest(name, kVersion, false) != nullptr; }

CUresult Look(const char* name, void** answer, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  const Row* best = nullptr;
  if (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) best = Newest(name, version, true);
  if (best == nullptr) best = Newest(name, version, false);
  if (status != nullptr) {
    *status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : IsKnown(name) ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  *answer = best == nullptr ? nullptr : g_hide ? best->hidden : best->exported;
  return best == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // namespace

// Everything but the look-ups: names itself, succeeds, touches no argument.
#define LEDGER_SECOND(first, second, ...) second
#define LEDGER_CHECK(...) LEDGER_SECOND(__VA_ARGS__, 0, )
#define LEDGER_LOOKUP_GetProcAddress ~, 1
#define LEDGER_LOOKUP_GetProcAddressV2 ~, 1
#define LEDGER_DEFINE_0(function, symbol, types) \
  CUresult function types {                      \
    g_last_called = #symbol;                     \
    return CUDA_SUCCESS;                         \
  }
#define LEDGER_DEFINE_1(function, symbol, types)
#define LEDGER_DEFINE_(lookup, function, symbol, types) LEDGER_DEFINE_##lookup(function, symbol, types)
#define LEDGER_DEFINE(lookup, function, symbol, types) LEDGER_DEFINE_(lookup, function, symbol, types)
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types)                      \
  LEDGER_DEFINE(LEDGER_CHECK(LEDGER_LOOKUP_##hook), symbol, symbol, types)          \
  namespace {                                                                       \
  LEDGER_DEFINE(LEDGER_CHECK(LEDGER_LOOKUP_##hook), Hidden_##symbol, symbol, types) \
  }
#include "interpose/hooks/entry_points.inc"
#undef LEDGER_DRIVER

CUresult cuGetProcAddress(const char* name, void** answer, int version, cuuint64_t flags) {
  g_last_called = "cuGetProcAddress";
  return Look(name, answer, version, flags, nullptr);
}

CUresult cuGetProcAddress_v2(const char* name, void** answer, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  g_last_called = "cuGetProcAddress_v2";
  return Look(name, answer, version, flags, status);
}

namespace {
CUresult Hidden_cuGetProcAddress(const char* name, void** answer, int version, cuuint64_t flags) {
  return cuGetProcAddress(name, answer, version, flags);
}
CUresult Hidden_cuGetProcAddress_v2(const char* name, void** answer, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* status) {
  return cuGetProcAddress_v2(name, answer, version, flags, status);
}
}  // namespace

extern "C" {

const char* FakeLastCalled() { return g_last_called; }
void FakeHide(int hide) { g_hide = hide != 0; }

CUresult cuInit(unsigned int) { return CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) {
  *version = kVersion;
  return CUDA_SUCCESS;
}
}
