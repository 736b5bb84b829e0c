// Ranges of the framework's profiler (record_function), which optimizers, FSDP and programs put around their work, as
// scope frames.
//
// The op adapter observes them for as long as it has to: with any observer of its profiler, the framework makes its
// lists of them anew at every backward node, which costs a process that is bound by its CPU about as much as all that
// is recorded. Where the agent is, it says where ranges begin and end instead (TakeRanges).
#pragma once

#include <string_view>

#include "interpose/torch/adapter_interface.h"

namespace ledger {

// `identity` is unlike that of every open range of the process. Returns what LeaveRange wants; null: not entered.
FrameStack* EnterRange(const void* identity, std::string_view name);

// On any thread. Counts the steps of optimizers: operators are observed in the first ones only (LEDGER_OPS).
void LeaveRange(FrameStack* stack, const void* identity, std::string_view name);

// From here on the caller tells of all ranges, and the adapter observes none.
void TakeRanges();

}  // namespace ledger
