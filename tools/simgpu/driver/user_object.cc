// Resources of the program that graphs keep alive.
#include <algorithm>

#include "tools/simgpu/driver/graph.h"

namespace simgpu {

void Release(std::vector<HeldObject>* held, std::vector<UserObject*>* destroyed) {
  for (const HeldObject& entry : *held) {
    entry.object->references -= std::min(entry.object->references, entry.references);
    if (entry.object->references == 0) destroyed->push_back(entry.object);
  }
  held->clear();
}

void RunDestroyed(const std::vector<UserObject*>& destroyed) {
  for (UserObject* object : destroyed) {
    object->destroy(object->pointer);
    delete object;
  }
}

}  // namespace simgpu

using simgpu::Graph;
using simgpu::GraphOf;
using simgpu::Guard;

SIMGPU_API cuUserObjectCreate(CUuserObject* handle, void* pointer, CUhostFn destroy, unsigned references, unsigned) {
  SIMGPU_ENTER();
  if (handle == nullptr || destroy == nullptr || references == 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = reinterpret_cast<CUuserObject>(new simgpu::UserObject{pointer, destroy, references});
  return CUDA_SUCCESS;
}

SIMGPU_API cuUserObjectRetain(CUuserObject handle, unsigned count) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  reinterpret_cast<simgpu::UserObject*>(handle)->references += count;
  return CUDA_SUCCESS;
}

SIMGPU_API cuUserObjectRelease(CUuserObject handle, unsigned count) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<simgpu::UserObject*> destroyed;
  {
    const Guard guard;
    std::vector<simgpu::HeldObject> held = {{reinterpret_cast<simgpu::UserObject*>(handle), count}};
    simgpu::Release(&held, &destroyed);
  }
  simgpu::RunDestroyed(destroyed);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphRetainUserObject(CUgraph graph_handle, CUuserObject handle, unsigned count, unsigned flags) {
  SIMGPU_ENTER();
  const Guard guard;
  Graph* graph = GraphOf(graph_handle);
  if (graph == nullptr || handle == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  auto* object = reinterpret_cast<simgpu::UserObject*>(handle);
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
  graph->objects.push_back({object, count});
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphReleaseUserObject(CUgraph graph_handle, CUuserObject handle, unsigned count) {
  SIMGPU_ENTER();
  {
    const Guard guard;
    Graph* graph = GraphOf(graph_handle);
    if (graph == nullptr || handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    unsigned left = count;
    for (simgpu::HeldObject& held : graph->objects) {
      if (held.object != reinterpret_cast<simgpu::UserObject*>(handle)) continue;
      const auto taken = std::min<std::uint64_t>(left, held.references);
      held.references -= taken;
      left -= static_cast<unsigned>(taken);
    }
    if (left != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  return cuUserObjectRelease(handle, count);
}
