// The functions that the agent calls. They are made of the interpreter's stable ABI, without a module of their own.
#pragma once

#include "interpose/torch/python_api.h"

namespace ledger {

// A new dict of functions by name; null with a Python exception set. The interpreter's lock is held.
python::Object* NewAgentNatives(const python::Api& api);

// What the agent wants to have called when the allocator gives up, or null.
python::Object* OutOfMemoryCallback();

// What to call when host memory was pinned; null: nothing.
python::Object* PinnedMemoryCallback();

// Tells the agent of the context object of a function whose node is complete. The interpreter's lock is held; the object
// is borrowed for the call.
void TellContext(void* context);

// Tells the agent of a tensor that a node keeps, which consists of others. Takes the interpreter's lock, as the
// framework does for every operation on such a tensor; the object is borrowed for the call. False: it asks for none.
bool TellSavedWrapper(void* tensor, std::uint8_t flags);

}  // namespace ledger
