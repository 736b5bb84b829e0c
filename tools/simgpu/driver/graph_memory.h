// Memory that graphs allocate (allocation and free nodes).
//
// An allocation node's address is known when the node is made. Its physical memory is taken when an instance of the
// graph is first launched or uploaded, and kept for further launches until the graph is gone or the device's graph
// memory is trimmed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tools/simgpu/driver/memory.h"

namespace simgpu {

struct Graph;
struct Node;
struct Stream;

// One allocation node's memory; shared by the node and its copies in instances of the graph, and by the program from a
// launch that allocates it to the free, even when the graph is gone by then. Created and released with the lock held.
struct GraphMemory : std::enable_shared_from_this<GraphMemory> {
  GraphMemory(Device* on, std::uintptr_t at, std::size_t size, std::size_t whole);
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  Device* device;
  std::uintptr_t address;
  std::size_t bytes;
  std::size_t extent;
  bool charged = false;
  std::shared_ptr<GraphMemory> live{};  // itself, between an allocation node's run and the free
};

// All below: with the lock held.
CUresult NewGraphMemory(Context* context, Device* device, std::size_t bytes, std::shared_ptr<GraphMemory>* memory);
// Takes the memory from the device, if it isn't held already.
CUresult TakePhysical(GraphMemory* memory);
// What an allocation node does when it runs.
CUresult RunAllocation(GraphMemory* memory);
void FreeGraphMemory(Allocation* allocation);
// cuMemAllocAsync and cuMemFreeAsync on a stream that is being captured.
CUresult CaptureAllocation(Stream* stream, Device* device, std::size_t bytes, CUdeviceptr* address);
CUresult CaptureFree(Stream* stream, Allocation* allocation);

}  // namespace simgpu
