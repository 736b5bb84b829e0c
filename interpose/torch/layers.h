// The layers on top of libledger.so, both optional and loaded by the library itself: the op adapter and the agent.
#pragma once

#include <atomic>

namespace ledger {

// Has the interpreter load the layers on its main thread, soon. Called at every block event, under the allocator's
// lock: does something only the first time in a process, and in a program without an interpreter nothing at all.
void RequestLayersSlow();
extern constinit std::atomic<bool> g_layers_requested;
inline void RequestLayers() {
  if (!g_layers_requested.load(std::memory_order_relaxed)) [[unlikely]]
    RequestLayersSlow();
}

// Has the agent say once more what it knows, soon: the allocator has just given up, and the program may end by it.
void RequestNames();

// Has the agent look for the tensors that host memory was just pinned for, soon.
void RequestPinnedNames();

}  // namespace ledger
