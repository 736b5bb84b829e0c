// Graphs: nodes and edges, made by capture or by hand, their instances, and what a node does when an instance is
// launched.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/simgpu/driver/export_table.h"
#include "tools/simgpu/driver/graph_memory.h"
#include "tools/simgpu/driver/stream.h"

namespace simgpu {

// One operation: what a stream is given, and what a node of a graph holds.
struct Operation {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  // What activity subscribers are told, and what an operation is otherwise known by.
  const char* name = nullptr;  // of a kernel; lives as long as the process
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint32_t copy_kind = 0;
  // Its effect on memory or on the program; runs without the lock. Empty: none.
  std::function<void()> effect{};
};

struct Node {
  Graph* graph;
  std::uint64_t id;
  Operation operation;
  std::vector<Node*> dependencies{};
  std::vector<Node*> dependents{};
  CUfunction function = nullptr;          // kernel
  CUDA_KERNEL_NODE_PARAMS kernel{};       // kernel; argument pointers are not kept
  std::shared_ptr<GraphMemory> memory{};  // allocation, free
  std::vector<Graph*> bodies{};           // child graph, conditional
  CUevent event = nullptr;                // event record, event wait
  bool enabled = true;                    // in an instance
};

// A resource of the program that graphs keep alive.
struct UserObject {
  void* pointer;
  CUhostFn destroy;
  std::uint64_t references;
};
struct HeldObject {
  UserObject* object;
  std::uint64_t references;
};

struct Graph {
  std::uint64_t id;
  Context* context;
  std::vector<std::unique_ptr<Node>> nodes{};  // in the order in which they were made
  std::vector<HeldObject> objects{};
};

struct GraphExec {
  std::uint64_t id;
  Context* context;
  std::vector<Node> nodes{};  // copies, in an order that respects the edges
  std::vector<HeldObject> objects{};
  unsigned long long flags = 0;
};

// All below: with the lock held.
Node* AddNode(Graph* graph, const std::vector<Node*>& dependencies, Operation operation);
// Adds the operation to the stream's capture, behind what the stream did last.
Node* CaptureNode(Stream* stream, Operation operation);

// Null where the handle is none of a graph.
Graph* GraphOf(CUgraph handle);
Graph* NewGraph(Context* context);
// Takes apart a graph. The caller runs `destroyed` after it has let go of the lock: the program's own functions.
void DeleteGraph(Graph* graph, std::vector<UserObject*>* destroyed);
void RunDestroyed(const std::vector<UserObject*>& destroyed);
// Lets go of user objects; those that nobody holds any more are added to `destroyed`.
void Release(std::vector<HeldObject>* held, std::vector<UserObject*>* destroyed);

// Gives one operation to a stream: a node in a capture; otherwise it is counted, and has its effect now. Takes the lock
// itself.
CUresult Submit(CUstream stream, Operation operation);

}  // namespace simgpu
