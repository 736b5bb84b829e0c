// The hooks of entry_points.inc: one function per name in its `hook` column. Each has the same form: guard, real call,
// record (for what gives memory back: record, then the real call), and the real call's result unchanged.
#pragma once

#include "interpose/hooks/entry.h"

namespace ledger::hooks {

#define LEDGER_UNWRAP(...) __VA_ARGS__
#define LEDGER_HOOK_TYPES_0(types)
#define LEDGER_HOOK_TYPES_N(types) , LEDGER_UNWRAP types
#define LEDGER_HOOK_TYPES_1 LEDGER_HOOK_TYPES_N
#define LEDGER_HOOK_TYPES_2 LEDGER_HOOK_TYPES_N
#define LEDGER_HOOK_TYPES_3 LEDGER_HOOK_TYPES_N
#define LEDGER_HOOK_TYPES_4 LEDGER_HOOK_TYPES_N
#define LEDGER_HOOK_TYPES_5 LEDGER_HOOK_TYPES_N
#define LEDGER_HOOK_TYPES_6 LEDGER_HOOK_TYPES_N
#define LEDGER_HOOK_TYPES_8 LEDGER_HOOK_TYPES_N
#define LEDGER_HOOK_TYPES_16 LEDGER_HOOK_TYPES_N

// Rows that share a hook declare it again.
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types) \
  CUresult hook(const Call<decltype(&::symbol)>& call LEDGER_HOOK_TYPES_##arity(types));
#define LEDGER_RUNTIME(symbol, hook, arity, types) \
  cudaError_t hook(const Call<decltype(&::symbol)>& call LEDGER_HOOK_TYPES_##arity(types));
#define LEDGER_CUBLAS(symbol, hook, arity, types) \
  cublasStatus_t hook(const Call<decltype(&::symbol)>& call LEDGER_HOOK_TYPES_##arity(types));
#include "interpose/hooks/entry_points.inc"
#undef LEDGER_DRIVER
#undef LEDGER_RUNTIME
#undef LEDGER_CUBLAS

}  // namespace ledger::hooks
