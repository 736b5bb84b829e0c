// Graphs and their nodes, made by hand or by capture.
#include "tools/simgpu/driver/graph.h"

#include <algorithm>
#include <unordered_set>

#include "tools/simgpu/driver/copy.h"
#include "tools/simgpu/driver/event.h"
#include "tools/simgpu/driver/module.h"

namespace simgpu {
namespace {

std::unordered_set<Graph*>& Known() {
  static auto* known = new std::unordered_set<Graph*>;
  return *known;
}

Node* NodeOf(CUgraphNode handle) { return reinterpret_cast<Node*>(handle); }
CUgraphNode HandleOf(Node* node) { return reinterpret_cast<CUgraphNode>(node); }

std::vector<Node*> NodesOf(const CUgraphNode* handles, std::size_t count) {
  const auto* first = reinterpret_cast<Node* const*>(handles);
  return {first, first + count};
}

// Adds a node by hand, and gives the caller its handle.
CUresult Add(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies, std::size_t count,
             Operation operation, Node** added = nullptr) {
  if (handle == nullptr || (count > 0 && dependencies == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  Graph* graph = GraphOf(graph_handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node* node = AddNode(graph, NodesOf(dependencies, count), std::move(operation));
  *handle = HandleOf(node);
  if (added != nullptr) *added = node;
  return CUDA_SUCCESS;
}

CUresult AddEventNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                      CUevent event, Operation operation) {
  const Guard guard;
  if (!IsEvent(event)) return CUDA_ERROR_INVALID_VALUE;
  Node* added = nullptr;
  SIMGPU_RETURN_IF_ERROR(Add(handle, graph, dependencies, count, std::move(operation), &added));
  added->event = event;
  return CUDA_SUCCESS;
}

// The usual form of a call that returns a list: with a null array, only its length; otherwise as much as there is room.
template <typename Range>
CUresult GiveList(const Range& nodes, CUgraphNode* handles, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (handles != nullptr) {
    for (std::size_t i = 0; i < *count; ++i) handles[i] = i < nodes.size() ? HandleOf(&*nodes[i]) : nullptr;
    *count = std::min(*count, nodes.size());
  } else {
    *count = nodes.size();
  }
  return CUDA_SUCCESS;
}

void Erase(std::vector<Node*>* nodes, const Node* node) {
  nodes->erase(std::remove(nodes->begin(), nodes->end(), node), nodes->end());
}

Graph* Clone(const Graph& graph) {
  Graph* copy = NewGraph(graph.context);
  std::vector<std::pair<const Node*, Node*>> pairs;
  const auto copy_of = [&pairs](const Node* node) {
    return std::find_if(pairs.begin(), pairs.end(), [node](const auto& pair) { return pair.first == node; })->second;
  };
  for (const auto& node : graph.nodes) pairs.emplace_back(node.get(), AddNode(copy, {}, node->operation));
  for (const auto& [node, clone] : pairs) {
    clone->function = node->function;
    clone->kernel = node->kernel;
    clone->memory = node->memory;
    clone->event = node->event;
    for (const Graph* body : node->bodies) clone->bodies.push_back(Clone(*body));
    for (const Node* dependency : node->dependencies) {
      clone->dependencies.push_back(copy_of(dependency));
      copy_of(dependency)->dependents.push_back(clone);
    }
  }
  copy->objects = graph.objects;
  for (const HeldObject& held : copy->objects) held.object->references += held.references;
  return copy;
}

}  // namespace

Graph* GraphOf(CUgraph handle) {
  auto* graph = reinterpret_cast<Graph*>(handle);
  return Known().count(graph) != 0 ? graph : nullptr;
}

Graph* NewGraph(Context* context) {
  static std::uint64_t last_id = 0;
  auto* graph = new Graph{.id = ++last_id, .context = context};
  Known().insert(graph);
  return graph;
}

void DeleteGraph(Graph* graph, std::vector<UserObject*>* destroyed) {
  Release(&graph->objects, destroyed);
  for (const auto& node : graph->nodes) {
    for (Graph* body : node->bodies) DeleteGraph(body, destroyed);
  }
  Known().erase(graph);
  delete graph;
}

Node* AddNode(Graph* graph, const std::vector<Node*>& dependencies, Operation operation) {
  static std::uint64_t last_id = 0;
  graph->nodes.push_back(std::make_unique<Node>(
      Node{.graph = graph, .id = ++last_id, .operation = std::move(operation), .dependencies = dependencies}));
  Node* node = graph->nodes.back().get();
  for (Node* dependency : dependencies) dependency->dependents.push_back(node);
  return node;
}

}  // namespace simgpu

using simgpu::Add;
using simgpu::Graph;
using simgpu::GraphOf;
using simgpu::Guard;
using simgpu::Node;
using simgpu::NodeOf;

SIMGPU_API cuGraphCreate(CUgraph* handle, unsigned flags) {
  simgpu::Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  *handle = reinterpret_cast<CUgraph>(simgpu::NewGraph(context));
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphDestroy(CUgraph handle) {
  SIMGPU_ENTER();
  std::vector<simgpu::UserObject*> destroyed;
  {
    const Guard guard;
    Graph* graph = GraphOf(handle);
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    simgpu::DeleteGraph(graph, &destroyed);
  }
  simgpu::RunDestroyed(destroyed);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphClone(CUgraph* copy, CUgraph handle) {
  SIMGPU_ENTER();
  const Guard guard;
  const Graph* graph = GraphOf(handle);
  if (copy == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *copy = reinterpret_cast<CUgraph>(simgpu::Clone(*graph));
  return CUDA_SUCCESS;
}

// ---- Nodes

SIMGPU_API cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                const CUDA_KERNEL_NODE_PARAMS* parameters) {  // v2
  SIMGPU_ENTER();
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const CUfunction function =
      parameters->func != nullptr ? parameters->func : reinterpret_cast<CUfunction>(parameters->kern);
  Node* added = nullptr;
  SIMGPU_RETURN_IF_ERROR(Add(node, graph, dependencies, count,
                             {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                              .name = simgpu::FunctionName(function),
                              .grid = {parameters->gridDimX, parameters->gridDimY, parameters->gridDimZ},
                              .block = {parameters->blockDimX, parameters->blockDimY, parameters->blockDimZ},
                              .shared_bytes = parameters->sharedMemBytes},
                             &added));
  added->kernel = *parameters;
  added->function = function;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                const CUDA_MEMCPY3D* copy, CUcontext) {
  SIMGPU_ENTER();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  simgpu::Operation operation;
  SIMGPU_RETURN_IF_ERROR(simgpu::DescribeCopy(*copy, &operation));
  const Guard guard;
  return Add(node, graph, dependencies, count, std::move(operation));
}

SIMGPU_API cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  SIMGPU_ENTER();
  if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return Add(node, graph, dependencies, count,
             simgpu::DescribeFill(set->dst, set->pitch, set->value, set->elementSize, set->width, set->height));
}

SIMGPU_API cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_HOST_NODE_PARAMS* host) {
  SIMGPU_ENTER();
  if (host == nullptr || host->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return Add(node, graph, dependencies, count,
             {.type = CU_GRAPH_NODE_TYPE_HOST, .effect = [fn = host->fn, user = host->userData] { fn(user); }});
}

SIMGPU_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  SIMGPU_ENTER();
  const Guard guard;
  return Add(node, graph, dependencies, count, {});
}

SIMGPU_API cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                    CUgraph child_handle) {
  SIMGPU_ENTER();
  const Guard guard;
  const Graph* child = GraphOf(child_handle);
  if (child == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Node* added = nullptr;
  SIMGPU_RETURN_IF_ERROR(Add(node, graph, dependencies, count, {.type = CU_GRAPH_NODE_TYPE_GRAPH}, &added));
  added->bodies.push_back(simgpu::Clone(*child));
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child) {
  SIMGPU_ENTER();
  const Guard guard;
  if (node == nullptr || child == nullptr || NodeOf(node)->bodies.empty()) return CUDA_ERROR_INVALID_VALUE;
  *child = reinterpret_cast<CUgraph>(NodeOf(node)->bodies.front());
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                     CUevent event) {
  SIMGPU_ENTER();
  const auto record = [event] {
    const Guard inner;
    simgpu::RecordNow(event, std::make_shared<std::uint64_t>(0));
  };
  return simgpu::AddEventNode(node, graph, dependencies, count, event,
                              {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .effect = record});
}

SIMGPU_API cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                   CUevent event) {
  SIMGPU_ENTER();
  return simgpu::AddEventNode(node, graph, dependencies, count, event, {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT});
}

SIMGPU_API cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                          size_t count, CUgraphNodeParams* parameters) {  // v2
  SIMGPU_ENTER();
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      const CUDA_KERNEL_NODE_PARAMS_v3& kernel = parameters->kernel;
      const CUDA_KERNEL_NODE_PARAMS plain = {.func = kernel.func,
                                             .gridDimX = kernel.gridDimX,
                                             .gridDimY = kernel.gridDimY,
                                             .gridDimZ = kernel.gridDimZ,
                                             .blockDimX = kernel.blockDimX,
                                             .blockDimY = kernel.blockDimY,
                                             .blockDimZ = kernel.blockDimZ,
                                             .sharedMemBytes = kernel.sharedMemBytes,
                                             .kernelParams = kernel.kernelParams,
                                             .extra = kernel.extra,
                                             .kern = kernel.kern,
                                             .ctx = kernel.ctx};
      return cuGraphAddKernelNode(node, graph, dependencies, count, &plain);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return cuGraphAddMemcpyNode(node, graph, dependencies, count, &parameters->memcpy.copyParams, nullptr);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& set = parameters->memset;
      const CUDA_MEMSET_NODE_PARAMS plain = {.dst = set.dst,
                                             .pitch = set.pitch,
                                             .value = set.value,
                                             .elementSize = set.elementSize,
                                             .width = set.width,
                                             .height = set.height};
      return cuGraphAddMemsetNode(node, graph, dependencies, count, &plain, nullptr);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS plain = {.fn = parameters->host.fn, .userData = parameters->host.userData};
      return cuGraphAddHostNode(node, graph, dependencies, count, &plain);
    }
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return cuGraphAddChildGraphNode(node, graph, dependencies, count, parameters->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return cuGraphAddEmptyNode(node, graph, dependencies, count);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return cuGraphAddEventWaitNode(node, graph, dependencies, count, parameters->eventWait.event);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return cuGraphAddEventRecordNode(node, graph, dependencies, count, parameters->eventRecord.event);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS plain = {.poolProps = parameters->alloc.poolProps,
                                          .accessDescs = parameters->alloc.accessDescs,
                                          .accessDescCount = parameters->alloc.accessDescCount,
                                          .bytesize = parameters->alloc.bytesize,
                                          .dptr = 0};
      const CUresult result = cuGraphAddMemAllocNode(node, graph, dependencies, count, &plain);
      if (result == CUDA_SUCCESS) parameters->alloc.dptr = plain.dptr;
      return result;
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return cuGraphAddMemFreeNode(node, graph, dependencies, count, parameters->free.dptr);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
      // No kernel computes the condition, so a body never runs. It can be built.
      const Guard guard;
      Node* added = nullptr;
      SIMGPU_RETURN_IF_ERROR(Add(node, graph, dependencies, count, {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL}, &added));
      for (unsigned i = 0; i < parameters->conditional.size; ++i) {
        added->bodies.push_back(simgpu::NewGraph(added->graph->context));
      }
      parameters->conditional.phGraph_out = reinterpret_cast<CUgraph*>(added->bodies.data());
      return CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

#undef cuGraphAddNode
SIMGPU_API cuGraphAddNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                          CUgraphNodeParams* parameters) {
  return cuGraphAddNode_v2(node, graph, dependencies, nullptr, count, parameters);
}

SIMGPU_API cuGraphConditionalHandleCreate(CUgraphConditionalHandle* handle, CUgraph graph, CUcontext, unsigned,
                                          unsigned) {
  SIMGPU_ENTER();
  const Guard guard;
  if (handle == nullptr || GraphOf(graph) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static cuuint64_t last = 0;
  *handle = ++last;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphDestroyNode(CUgraphNode handle) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<simgpu::UserObject*> destroyed;
  {
    const Guard guard;
    Node* node = NodeOf(handle);
    for (Node* dependency : node->dependencies) simgpu::Erase(&dependency->dependents, node);
    for (Node* dependent : node->dependents) simgpu::Erase(&dependent->dependencies, node);
    for (Graph* body : node->bodies) simgpu::DeleteGraph(body, &destroyed);
    auto& nodes = node->graph->nodes;
    nodes.erase(std::find_if(nodes.begin(), nodes.end(), [node](const auto& own) { return own.get() == node; }));
  }
  simgpu::RunDestroyed(destroyed);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  SIMGPU_ENTER();
  if (node == nullptr || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = NodeOf(node)->operation.type;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {  // v2
  SIMGPU_ENTER();
  if (node == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (NodeOf(node)->operation.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  *parameters = NodeOf(node)->kernel;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* parameters) {  // v2
  SIMGPU_ENTER();
  if (node == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (NodeOf(node)->operation.type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  NodeOf(node)->kernel = *parameters;
  return CUDA_SUCCESS;
}

// ---- Edges

SIMGPU_API cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER();
  const Guard guard;
  const Graph* graph = GraphOf(handle);
  return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : simgpu::GiveList(graph->nodes, nodes, count);
}

SIMGPU_API cuGraphGetRootNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER();
  const Guard guard;
  const Graph* graph = GraphOf(handle);
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> roots;
  for (const auto& node : graph->nodes) {
    if (node->dependencies.empty()) roots.push_back(node.get());
  }
  return simgpu::GiveList(roots, nodes, count);
}

SIMGPU_API cuGraphGetEdges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                           size_t* count) {  // v2
  SIMGPU_ENTER();
  const Guard guard;
  const Graph* graph = GraphOf(handle);
  if (graph == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<Node*> starts;
  std::vector<Node*> ends;
  for (const auto& node : graph->nodes) {
    for (Node* dependency : node->dependencies) {
      starts.push_back(dependency);
      ends.push_back(node.get());
    }
  }
  size_t room = *count;
  if (data != nullptr) std::fill(data, data + room, CUgraphEdgeData{});
  if (to != nullptr) simgpu::GiveList(ends, to, &room);
  return simgpu::GiveList(starts, from, count);
}

SIMGPU_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                      size_t* count) {  // v2
  SIMGPU_ENTER();
  if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return simgpu::GiveList(NodeOf(node)->dependencies, nodes, count);
}

SIMGPU_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, CUgraphEdgeData* data,
                                        size_t* count) {  // v2
  SIMGPU_ENTER();
  if (node == nullptr || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return simgpu::GiveList(NodeOf(node)->dependents, nodes, count);
}

SIMGPU_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
                                  size_t count) {  // v2
  SIMGPU_ENTER();
  const Guard guard;
  if (GraphOf(graph) == nullptr || (count > 0 && (from == nullptr || to == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    NodeOf(to[i])->dependencies.push_back(NodeOf(from[i]));
    NodeOf(from[i])->dependents.push_back(NodeOf(to[i]));
  }
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                     const CUgraphEdgeData*, size_t count) {  // v2
  SIMGPU_ENTER();
  const Guard guard;
  if (GraphOf(graph) == nullptr || (count > 0 && (from == nullptr || to == nullptr))) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    simgpu::Erase(&NodeOf(to[i])->dependencies, NodeOf(from[i]));
    simgpu::Erase(&NodeOf(from[i])->dependents, NodeOf(to[i]));
  }
  return CUDA_SUCCESS;
}

// The forms of CUDA 10, without data of edges.
#undef cuGraphGetEdges
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
SIMGPU_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return cuGraphGetEdges_v2(graph, from, to, nullptr, count);
}
SIMGPU_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependencies_v2(node, nodes, nullptr, count);
}
SIMGPU_API cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
  return cuGraphNodeGetDependentNodes_v2(node, nodes, nullptr, count);
}
SIMGPU_API cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}
SIMGPU_API cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphRemoveDependencies_v2(graph, from, to, nullptr, count);
}
