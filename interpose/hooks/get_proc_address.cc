// Asking the driver for its functions: the way on which NVIDIA's libraries, with a runtime linked into each, get all of
// theirs. The real call comes first; what it says, and what it leaves in its out-parameters when it fails, stays as it
// is.
#include "interpose/core/real_dlsym.h"
#include "interpose/core/recorder.h"
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/resolve.h"

namespace ledger::hooks {
namespace {

void WrapAnswer(const Site& site, const char* symbol, void** answer, int version, unsigned long long flags) {
  if (symbol == nullptr || answer == nullptr || *answer == nullptr || IsOurs(*answer)) return;
  ErrnoSaver errno_saver;
  Entry entry;
  if (!FindAnswer(symbol, version, flags, *answer, entry) || IsVendorTool(site.caller)) return;
  *answer = Wrap(entry, *answer);
}

// The version for which cudaGetDriverEntryPoint asks: the runtime's own.
int RuntimeVersion() {
  int version = CUDART_VERSION;
  for (const char* const soname : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
    const auto get =
        reinterpret_cast<decltype(&cudaRuntimeGetVersion)>(SymbolOfLoaded(soname, "cudaRuntimeGetVersion"));
    if (get != nullptr && get(&version) == cudaSuccess) break;
  }
  return version;
}

// The per-thread variants of the runtime's look-up mean the per-thread stream unless they are told otherwise.
unsigned long long DriverFlags(const Site& site, unsigned long long flags) {
  if (flags == cudaEnableDefault && InfoOf(site.entry).per_thread) return cudaEnablePerThreadDefaultStream;
  return flags;
}

}  // namespace

CUresult GetProcAddress(const Call<decltype(&::cuGetProcAddress)>& call, const char* symbol, void** answer, int version,
                        cuuint64_t flags) {
  const CUresult result = call.real(symbol, answer, version, flags);
  if (result == CUDA_SUCCESS) WrapAnswer(call.site, symbol, answer, version, flags);
  return result;
}

CUresult GetProcAddressV2(const Call<decltype(&::cuGetProcAddress_v2)>& call, const char* symbol, void** answer,
                          int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  const CUresult result = call.real(symbol, answer, version, flags, status);
  if (result == CUDA_SUCCESS) WrapAnswer(call.site, symbol, answer, version, flags);
  return result;
}

cudaError_t RuntimeGetDriverEntryPoint(const Call<decltype(&::cudaGetDriverEntryPoint)>& call, const char* symbol,
                                       void** answer, unsigned long long flags,
                                       cudaDriverEntryPointQueryResult* status) {
  const cudaError_t result = call.real(symbol, answer, flags, status);
  if (result == cudaSuccess) WrapAnswer(call.site, symbol, answer, RuntimeVersion(), DriverFlags(call.site, flags));
  return result;
}

cudaError_t RuntimeGetDriverEntryPointByVersion(const Call<decltype(&::cudaGetDriverEntryPointByVersion)>& call,
                                                const char* symbol, void** answer, unsigned int version,
                                                unsigned long long flags, cudaDriverEntryPointQueryResult* status) {
  const cudaError_t result = call.real(symbol, answer, version, flags, status);
  if (result == cudaSuccess) {
    WrapAnswer(call.site, symbol, answer, static_cast<int>(version), DriverFlags(call.site, flags));
  }
  return result;
}

}  // namespace ledger::hooks
