// The parts of the op adapter. It is built against the installed framework (see adapter_command.cc) and loaded by
// libledger.so into a process that runs exactly that version.
//
// Every function that the framework calls is noexcept in effect: what a callback throws is caught in it, counts as not
// recorded, and never reaches the program.
#pragma once

#include "interpose/torch/adapter_interface.h"

namespace ledger::adapter {

// What libledger.so offers. Set before anything else of the adapter runs.
const AdapterHost& Host();

void StartOps();        // ops.cc: scopes of operators and backward nodes, gradients
void StartAllocator();  // allocator.cc: requested sizes, segments, delayed frees
void RememberPlace(const void* node);  // ops.cc
void RecordSavedTensor(const void* saved_variable, const void* tensor, bool is_output);  // saved_tensors.cc

}  // namespace ledger::adapter
