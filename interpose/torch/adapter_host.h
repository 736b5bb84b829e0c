// The op adapter as the rest of libledger.so sees it.
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/torch/adapter_interface.h"

namespace ledger {

// Null: there is none.
const Adapter* AttachedAdapter();

// Loads the adapter for a version of the framework: beside this library, or from the user's cache. Tells the ledger how
// it went (setting "layer.adapter").
void LoadAdapter(std::string_view framework_version);

// What the adapter said on this thread, under the allocator's lock, about the block that is reported now.
std::uint64_t TakeRequestedBytes(std::uint64_t address);  // 0: not known
bool TakePendingFree(std::uint64_t address);              // true: streams still use it

// Has the adapter been told of a gradient yet? The framework's version decides whether it is.
bool AdapterSeesGradients();  // autograd_hooks.cc

// The folder that libledger.so lies in, without a slash at the end; empty when it cannot be found.
std::string_view LibraryDirectory();

}  // namespace ledger
