// Generated from entry_points.inc: the exported symbols, and kVariants wrappers per entry for functions that were
// looked up. None has code of its own; all go to the hook that the table names.
#include <array>
#include <utility>

#include "interpose/core/recorder.h"
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/resolve.h"

namespace ledger::hooks {
namespace {

// What a caller gets whose real function does not exist: the linker would have refused it without us.
template <typename Result>
constexpr Result kNotFound;
template <>
constexpr CUresult kNotFound<CUresult> = CUDA_ERROR_NOT_FOUND;
template <>
constexpr cudaError_t kNotFound<cudaError_t> = cudaErrorSymbolNotFound;
template <>
constexpr cublasStatus_t kNotFound<cublasStatus_t> = CUBLAS_STATUS_NOT_SUPPORTED;

template <Entry kEntry, auto kHook, int kVariant, typename Function>
struct Wrapper;

template <Entry kEntry, auto kHook, int kVariant, typename Result, typename... Arguments>
struct Wrapper<kEntry, kHook, kVariant, Result (*)(Arguments...)> {
  using Function = Result (*)(Arguments...);
  static Result Enter(Arguments... arguments) {
    const Call<Function> call = {reinterpret_cast<Function>(RealOfVariant(kEntry, kVariant)),
                                 {__builtin_return_address(0), kEntry}};
    return kHook(call, arguments...);
  }
};

template <Entry kEntry, auto kHook, typename Function, int... kVariant>
constexpr std::array<void (*)(), kVariants> MakeWrappers(std::integer_sequence<int, kVariant...>) {
  return {reinterpret_cast<void (*)()>(&Wrapper<kEntry, kHook, kVariant, Function>::Enter)...};
}

// A table that the loader relocates once; nothing is computed at start.
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types) \
  MakeWrappers<Entry::symbol, &hook, decltype(&::symbol)>(std::make_integer_sequence<int, kVariants>()),
#define LEDGER_RUNTIME(symbol, hook, arity, types) LEDGER_DRIVER(symbol, , , hook, arity, types)
#define LEDGER_CUBLAS(symbol, hook, arity, types) LEDGER_DRIVER(symbol, , , hook, arity, types)
const std::array<void (*)(), kVariants> kWrappers[kEntryCount] = {
#include "interpose/hooks/entry_points.inc"
};
#undef LEDGER_DRIVER
#undef LEDGER_RUNTIME
#undef LEDGER_CUBLAS

}  // namespace

void* WrapperOf(Entry entry, int variant) {
  return reinterpret_cast<void*>(kWrappers[Index(entry)][static_cast<std::size_t>(variant)]);
}

}  // namespace ledger::hooks

#define LEDGER_PARAMETERS_0()
#define LEDGER_PARAMETERS_1(A) A a
#define LEDGER_PARAMETERS_2(A, B) A a, B b
#define LEDGER_PARAMETERS_3(A, B, C) A a, B b, C c
#define LEDGER_PARAMETERS_4(A, B, C, D) A a, B b, C c, D d
#define LEDGER_PARAMETERS_5(A, B, C, D, E) A a, B b, C c, D d, E e
#define LEDGER_PARAMETERS_6(A, B, C, D, E, F) A a, B b, C c, D d, E e, F f
#define LEDGER_PARAMETERS_8(A, B, C, D, E, F, G, H) A a, B b, C c, D d, E e, F f, G g, H h
#define LEDGER_PARAMETERS_16(A, B, C, D, E, F, G, H, I, J, K, L, M, N, O, P) \
  A a, B b, C c, D d, E e, F f, G g, H h, I i, J j, K k, L l, M m, N n, O o, P p
#define LEDGER_ARGUMENTS_0
#define LEDGER_ARGUMENTS_1 , a
#define LEDGER_ARGUMENTS_2 , a, b
#define LEDGER_ARGUMENTS_3 , a, b, c
#define LEDGER_ARGUMENTS_4 , a, b, c, d
#define LEDGER_ARGUMENTS_5 , a, b, c, d, e
#define LEDGER_ARGUMENTS_6 , a, b, c, d, e, f
#define LEDGER_ARGUMENTS_8 , a, b, c, d, e, f, g, h
#define LEDGER_ARGUMENTS_16 , a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p

#define LEDGER_EXPORT(Result, symbol, hook, arity, types)                                         \
  extern "C" [[gnu::visibility("default")]] Result symbol(LEDGER_PARAMETERS_##arity types) {      \
    using namespace ledger::hooks;                                                                \
    const void* const caller = __builtin_return_address(0);                                       \
    const auto real = reinterpret_cast<decltype(&::symbol)>(RealBySymbol(Entry::symbol, caller)); \
    if (real == nullptr) return kNotFound<Result>;                                                \
    const Call<decltype(&::symbol)> call = {real, {caller, Entry::symbol}};                       \
    return hook(call LEDGER_ARGUMENTS_##arity);                                                   \
  }
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types) LEDGER_EXPORT(CUresult, symbol, hook, arity, types)
#define LEDGER_RUNTIME(symbol, hook, arity, types) LEDGER_EXPORT(cudaError_t, symbol, hook, arity, types)
#define LEDGER_CUBLAS(symbol, hook, arity, types) LEDGER_EXPORT(cublasStatus_t, symbol, hook, arity, types)
#include "interpose/hooks/entry_points.inc"
