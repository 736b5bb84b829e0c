// Parameters of nodes that are there already, in graphs and in their instances.
#include <algorithm>

#include "tools/simgpu/driver/copy.h"
#include "tools/simgpu/driver/event.h"
#include "tools/simgpu/driver/graph.h"
#include "tools/simgpu/driver/graph_exec.h"

namespace simgpu {
namespace {

// The node of a graph, or its copy in an instance. Null where it has none of that type.
Node* Find(CUgraphExec exec, CUgraphNode handle, CUgraphNodeType type) {
  auto* node = reinterpret_cast<Node*>(handle);
  if (node == nullptr || node->operation.type != type) return nullptr;
  return exec == nullptr ? node : FindInExec(exec, node->id);
}

CUresult SetEffect(CUgraphExec exec, CUgraphNode handle, Operation operation) {
  const Guard guard;
  Node* node = Find(exec, handle, operation.type);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->operation = std::move(operation);
  return CUDA_SUCCESS;
}

CUresult SetCopy(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  SIMGPU_ENTER();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Operation operation;
  SIMGPU_RETURN_IF_ERROR(DescribeCopy(*copy, &operation));
  return SetEffect(exec, node, std::move(operation));
}

CUresult SetFill(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set) {
  SIMGPU_ENTER();
  if (set == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetEffect(exec, node,
                   DescribeFill(set->dst, set->pitch, set->value, set->elementSize, set->width, set->height));
}

CUresult SetHost(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  SIMGPU_ENTER();
  if (host == nullptr || host->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return SetEffect(exec, node,
                   {.type = CU_GRAPH_NODE_TYPE_HOST, .effect = [fn = host->fn, user = host->userData] { fn(user); }});
}

CUresult SetEvent(CUgraphExec exec, CUgraphNode handle, CUgraphNodeType type, CUevent event) {
  SIMGPU_ENTER();
  const Guard guard;
  Node* node = Find(exec, handle, type);
  if (node == nullptr || !IsEvent(event)) return CUDA_ERROR_INVALID_VALUE;
  node->event = event;
  if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
    node->operation.effect = [event] {
      const Guard inner;
      RecordNow(event, std::make_shared<std::uint64_t>(0));
    };
  }
  return CUDA_SUCCESS;
}

CUresult GetEvent(CUgraphNode handle, CUgraphNodeType type, CUevent* event) {
  SIMGPU_ENTER();
  const Guard guard;
  const Node* node = Find(nullptr, handle, type);
  if (node == nullptr || event == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *event = node->event;
  return CUDA_SUCCESS;
}

// A change that takes only what has meaning here: sizes and functions of kernels don't, since nothing runs.
CUresult SetAny(CUgraphExec exec, CUgraphNode node, const CUgraphNodeParams* parameters) {
  if (parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (parameters->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return SetCopy(exec, node, &parameters->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& set = parameters->memset;
      const CUDA_MEMSET_NODE_PARAMS plain = {.dst = set.dst,
                                             .pitch = set.pitch,
                                             .value = set.value,
                                             .elementSize = set.elementSize,
                                             .width = set.width,
                                             .height = set.height};
      return SetFill(exec, node, &plain);
    }
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS plain = {.fn = parameters->host.fn, .userData = parameters->host.userData};
      return SetHost(exec, node, &plain);
    }
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      SIMGPU_ENTER();
      const Guard guard;
      return Find(exec, node, CU_GRAPH_NODE_TYPE_KERNEL) == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace
}  // namespace simgpu

using simgpu::Guard;
using simgpu::Node;

SIMGPU_API cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  return simgpu::SetCopy(nullptr, node, copy);
}
SIMGPU_API cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext) {
  return simgpu::SetCopy(exec, node, copy);
}
SIMGPU_API cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set) {
  return simgpu::SetFill(nullptr, node, set);
}
SIMGPU_API cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* set,
                                          CUcontext) {
  return simgpu::SetFill(exec, node, set);
}
SIMGPU_API cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  return simgpu::SetHost(nullptr, node, host);
}
SIMGPU_API cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  return simgpu::SetHost(exec, node, host);
}
SIMGPU_API cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* parameters) {
  return simgpu::SetAny(nullptr, node, parameters);
}
SIMGPU_API cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams* parameters) {
  return simgpu::SetAny(exec, node, parameters);
}

SIMGPU_API cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event) {
  return simgpu::GetEvent(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
SIMGPU_API cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) {
  return simgpu::GetEvent(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}
SIMGPU_API cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  return simgpu::SetEvent(nullptr, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
SIMGPU_API cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  return simgpu::SetEvent(nullptr, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}
SIMGPU_API cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return simgpu::SetEvent(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}
SIMGPU_API cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event) {
  return simgpu::SetEvent(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

SIMGPU_API cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  SIMGPU_ENTER();
  const Guard guard;
  const Node* node = simgpu::Find(nullptr, handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  if (node == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *parameters = {};
  parameters->poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters->poolProps.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = node->memory->device->ordinal};
  parameters->bytesize = node->memory->bytes;
  parameters->dptr = node->memory->address;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
  SIMGPU_ENTER();
  const Guard guard;
  const Node* node = simgpu::Find(nullptr, handle, CU_GRAPH_NODE_TYPE_MEM_FREE);
  if (node == nullptr || address == nullptr || node->memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *address = node->memory->address;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned enabled) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Node* node = simgpu::FindInExec(exec, reinterpret_cast<Node*>(handle)->id);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  node->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode handle, unsigned* enabled) {
  SIMGPU_ENTER();
  if (handle == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Node* node = simgpu::FindInExec(exec, reinterpret_cast<Node*>(handle)->id);
  if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}

// ---- Attributes of kernels (priorities, clusters): kept nowhere

SIMGPU_API cuGraphKernelNodeCopyAttributes(CUgraphNode, CUgraphNode) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphKernelNodeSetAttribute(CUgraphNode, CUkernelNodeAttrID, const CUkernelNodeAttrValue*) {
  SIMGPU_ENTER();
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphKernelNodeGetAttribute(CUgraphNode, CUkernelNodeAttrID, CUkernelNodeAttrValue* value) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *value = {};
  return CUDA_SUCCESS;
}
