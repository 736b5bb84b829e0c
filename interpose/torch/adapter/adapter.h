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

void StartOps();        // ops.cc: scopes of operators and profiler ranges
void StartAllocator();  // allocator.cc: requested sizes, segments, delayed frees

// What libledger.so calls; see Adapter.
void RecordSavedTensor(const void* saved_variable, const void* tensor, bool is_output);  // saved_tensors.cc
void RememberNode(const void* created);                                                  // nodes.cc
bool CurrentNode(NodeInfo* info);                                                        // nodes.cc
void RecordGradient(const void* accumulate_grad);                                        // gradients.cc
void StopObserving(Observed what);                                                       // ops.cc
std::uint32_t CollectiveName();                                                          // collectives.cc
bool CurrentProcessGroup(record::ProcessGroupInfo* info);                                // collectives.cc
bool ProcessGroupNamed(const char* name, std::size_t bytes,                              // collectives.cc
                       record::ProcessGroupInfo* info);

}  // namespace ledger::adapter
