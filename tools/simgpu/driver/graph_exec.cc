// Instances of graphs, and their launch.
#include "tools/simgpu/driver/graph_exec.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tools/simgpu/driver/activity.h"
#include "tools/simgpu/driver/graph.h"

namespace simgpu {
namespace {

std::unordered_set<GraphExec*>& Known() {
  static auto* known = new std::unordered_set<GraphExec*>;
  return *known;
}

GraphExec* ExecOf(CUgraphExec handle) {
  auto* exec = reinterpret_cast<GraphExec*>(handle);
  return Known().count(exec) != 0 ? exec : nullptr;
}

// Appends copies of a graph's nodes, child graphs in their place, in an order that respects the edges. False: a cycle.
bool Flatten(const Graph& graph, std::vector<Node>* nodes) {
  std::unordered_map<const Node*, std::size_t> missing;
  std::vector<const Node*> ready;
  for (const auto& node : graph.nodes) {
    missing[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) ready.push_back(node.get());
  }
  std::size_t done = 0;
  for (; done < ready.size(); ++done) {
    const Node* node = ready[done];
    if (node->operation.type == CU_GRAPH_NODE_TYPE_GRAPH) {
      for (const Graph* child : node->bodies) {
        if (!Flatten(*child, nodes)) return false;
      }
    } else {
      nodes->push_back(*node);
    }
    for (const Node* dependent : node->dependents) {
      if (--missing[dependent] == 0) ready.push_back(dependent);
    }
  }
  return done == graph.nodes.size();
}

void Hold(GraphExec* exec, const Graph& graph) {
  for (const HeldObject& held : graph.objects) {
    ++held.object->references;
    exec->objects.push_back({held.object, 1});
  }
  for (const auto& node : graph.nodes) {
    for (const Graph* body : node->bodies) Hold(exec, *body);
  }
}

CUresult Instantiate(CUgraphExec* handle, CUgraph graph_handle, unsigned long long flags) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Graph* graph = GraphOf(graph_handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static std::uint64_t last_id = 0;
  auto exec = std::make_unique<GraphExec>(GraphExec{.id = ++last_id, .context = graph->context, .flags = flags});
  if (!Flatten(*graph, &exec->nodes)) return CUDA_ERROR_INVALID_VALUE;
  Hold(exec.get(), *graph);
  Known().insert(exec.get());
  *handle = reinterpret_cast<CUgraphExec>(exec.release());
  return CUDA_SUCCESS;
}

// Takes the physical memory of a graph's allocations, as an upload and a first launch do.
CUresult TakeMemory(const GraphExec& exec) {
  for (const Node& node : exec.nodes) {
    if (node.operation.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) SIMGPU_RETURN_IF_ERROR(TakePhysical(node.memory.get()));
  }
  return CUDA_SUCCESS;
}

// What one node does when its turn comes. Without the lock.
CUresult Run(const Node& node, const Activity& place, bool told) {
  if (!node.enabled) return CUDA_SUCCESS;
  switch (node.operation.type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      const Guard guard;
      return RunAllocation(node.memory.get());
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE: {
      const Guard guard;
      Allocation* allocation = node.memory == nullptr ? nullptr : FindAllocationAt(node.memory->address);
      if (allocation != nullptr) FreeGraphMemory(allocation);
      return CUDA_SUCCESS;
    }
    default:
      break;
  }
  if (node.operation.effect) node.operation.effect();
  if (told) {
    Activity activity = place;
    activity.graph_node = node.id;
    TellActivity(node.operation, activity);
  }
  return CUDA_SUCCESS;
}

}  // namespace

Node* FindInExec(CUgraphExec handle, std::uint64_t node_id) {
  GraphExec* exec = ExecOf(handle);
  if (exec == nullptr) return nullptr;
  const auto found =
      std::find_if(exec->nodes.begin(), exec->nodes.end(), [node_id](const Node& node) { return node.id == node_id; });
  return found == exec->nodes.end() ? nullptr : &*found;
}

}  // namespace simgpu

using simgpu::ExecOf;
using simgpu::GraphExec;
using simgpu::Guard;
using simgpu::Stream;

SIMGPU_API cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return simgpu::Instantiate(exec, graph, flags);
}

SIMGPU_API cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = simgpu::Instantiate(exec, graph, parameters->flags);
  parameters->hErrNode_out = nullptr;
  parameters->result_out = result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

#undef cuGraphInstantiate
SIMGPU_API cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log, size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes > 0) *log = '\0';
  return simgpu::Instantiate(exec, graph, 0);
}
SIMGPU_API cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error_node, char* log,
                                 size_t log_bytes) {
  return cuGraphInstantiate(exec, graph, error_node, log, log_bytes);
}

SIMGPU_API cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  SIMGPU_ENTER();
  const bool told = simgpu::HasActivitySubscriber();
  simgpu::Activity place = {};
  const GraphExec* exec = nullptr;
  {
    const Guard guard;
    exec = ExecOf(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Stream* stream = nullptr;
    SIMGPU_RETURN_IF_ERROR(simgpu::FindStream(stream_handle, &stream));
    // A capture would take it in as a child graph; an instance doesn't know its graph any more.
    if (stream->capture != nullptr) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    simgpu::CountOperation(stream);
    place = simgpu::PlaceOf(*stream);
  }
  if (told) place.correlation = simgpu::NextCorrelation();
  for (const simgpu::Node& node : exec->nodes) SIMGPU_RETURN_IF_ERROR(simgpu::Run(node, place, told));
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphUpload(CUgraphExec handle, CUstream) {
  SIMGPU_ENTER();
  const Guard guard;
  const GraphExec* exec = ExecOf(handle);
  return exec == nullptr ? CUDA_ERROR_INVALID_VALUE : simgpu::TakeMemory(*exec);
}

SIMGPU_API cuGraphExecDestroy(CUgraphExec handle) {
  SIMGPU_ENTER();
  std::vector<simgpu::UserObject*> destroyed;
  {
    const Guard guard;
    GraphExec* exec = ExecOf(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const simgpu::HeldObject& held : exec->objects) {
      if (--held.object->references == 0) destroyed.push_back(held.object);
    }
    simgpu::Known().erase(exec);
    delete exec;
  }
  simgpu::RunDestroyed(destroyed);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphExecUpdate(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {  // v2
  SIMGPU_ENTER();
  const Guard guard;
  GraphExec* exec = ExecOf(handle);
  const simgpu::Graph* graph = simgpu::GraphOf(graph_handle);
  if (exec == nullptr || graph == nullptr || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<simgpu::Node> nodes;
  *info = {};
  const bool same_shape = simgpu::Flatten(*graph, &nodes) && nodes.size() == exec->nodes.size() &&
                          std::equal(nodes.begin(), nodes.end(), exec->nodes.begin(),
                                     [](const auto& a, const auto& b) { return a.operation.type == b.operation.type; });
  if (!same_shape) {
    info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  exec->nodes = std::move(nodes);
  info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t* flags) {
  SIMGPU_ENTER();
  const Guard guard;
  const GraphExec* exec = ExecOf(handle);
  if (exec == nullptr || flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = exec->flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphExecKernelNodeSetParams(CUgraphExec handle, CUgraphNode, const CUDA_KERNEL_NODE_PARAMS* parameters) {
  SIMGPU_ENTER();  // v2
  const Guard guard;
  // Arguments are never read, so there is nothing to set.
  return ExecOf(handle) == nullptr || parameters == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
