#include "tools/simgpu/driver/graph_memory.h"

#include <algorithm>
#include <map>

#include "tools/simgpu/driver/address_space.h"
#include "tools/simgpu/driver/graph.h"

namespace simgpu {
namespace {

struct Totals {
  std::uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
  std::vector<GraphMemory*> all;
};

Totals& TotalsOf(const Device* device) {
  static auto* totals = new std::map<const Device*, Totals>;
  return (*totals)[device];
}

void GiveBack(GraphMemory* memory) {
  if (!memory->charged) return;
  memory->charged = false;
  DischargeDevice(*memory->device, memory->extent);
  TotalsOf(memory->device).reserved -= memory->extent;
  ZeroRange(memory->address, memory->extent);
}

// May be the end of the memory, if nothing but the program held it.
void SetLive(GraphMemory* memory, bool live) {
  if ((memory->live != nullptr) == live) return;
  Totals& totals = TotalsOf(memory->device);
  if (live) {
    totals.used += memory->extent;
    totals.used_high = std::max(totals.used_high, totals.used);
    memory->live = memory->shared_from_this();
  } else {
    totals.used -= memory->extent;
    const std::shared_ptr<GraphMemory> last = std::move(memory->live);
  }
}

std::map<std::uintptr_t, std::weak_ptr<GraphMemory>>& ByAddress() {
  static auto* by_address = new std::map<std::uintptr_t, std::weak_ptr<GraphMemory>>;
  return *by_address;
}

}  // namespace

GraphMemory::GraphMemory(Device* on, std::uintptr_t at, std::size_t size, std::size_t whole)
    : device(on), address(at), bytes(size), extent(whole) {
  TotalsOf(device).all.push_back(this);
}

GraphMemory::~GraphMemory() {
  GiveBack(this);
  auto& all = TotalsOf(device).all;
  all.erase(std::find(all.begin(), all.end(), this));
  ByAddress().erase(address);
  RemoveAllocation(address);
  ReleaseAddresses(address, extent);
}

CUresult NewGraphMemory(Context* context, Device* device, std::size_t bytes, std::shared_ptr<GraphMemory>* memory) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > DeviceTotalBytes()) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t granularity = GetProfile()->Get("memory.granularity");
  const std::size_t extent = RoundUp(bytes, granularity);
  const std::uintptr_t address = ReserveAddresses(extent, granularity);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *memory = std::make_shared<GraphMemory>(device, address, bytes, extent);
  ByAddress()[address] = *memory;
  AddAllocation({.address = address, .bytes = bytes, .kind = MemoryKind::kGraph, .context = context, .device = device});
  return CUDA_SUCCESS;
}

CUresult TakePhysical(GraphMemory* memory) {
  if (memory->charged) return CUDA_SUCCESS;
  SIMGPU_RETURN_IF_ERROR(ChargeDevice(*memory->device, memory->extent));
  memory->charged = true;
  Totals& totals = TotalsOf(memory->device);
  totals.reserved += memory->extent;
  totals.reserved_high = std::max(totals.reserved_high, totals.reserved);
  return CUDA_SUCCESS;
}

CUresult RunAllocation(GraphMemory* memory) {
  SIMGPU_RETURN_IF_ERROR(TakePhysical(memory));
  SetLive(memory, true);
  return CUDA_SUCCESS;
}

void FreeGraphMemory(Allocation* allocation) {
  const auto memory = ByAddress()[allocation->address].lock();
  if (memory != nullptr) SetLive(memory.get(), false);
}

CUresult CaptureAllocation(Stream* stream, Device* device, std::size_t bytes, CUdeviceptr* address) {
  std::shared_ptr<GraphMemory> memory;
  SIMGPU_RETURN_IF_ERROR(NewGraphMemory(stream->context, device, bytes, &memory));
  *address = memory->address;
  CaptureNode(stream, {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .bytes = bytes})->memory = std::move(memory);
  return CUDA_SUCCESS;
}

CUresult CaptureFree(Stream* stream, Allocation* allocation) {
  if (allocation->kind != MemoryKind::kGraph) return CUDA_ERROR_INVALID_VALUE;  // only what a graph allocated
  auto memory = ByAddress()[allocation->address].lock();
  CaptureNode(stream, {.type = CU_GRAPH_NODE_TYPE_MEM_FREE})->memory = std::move(memory);
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using simgpu::Guard;
using simgpu::Node;

SIMGPU_API cuGraphAddMemAllocNode(CUgraphNode* handle, CUgraph graph_handle, const CUgraphNode* dependencies,
                                  size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* parameters) {
  SIMGPU_ENTER();
  if (handle == nullptr || graph_handle == nullptr || parameters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (parameters->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  const Guard guard;
  auto* graph = reinterpret_cast<simgpu::Graph*>(graph_handle);
  simgpu::Device* device = simgpu::FindDevice(parameters->poolProps.location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::shared_ptr<simgpu::GraphMemory> memory;
  SIMGPU_RETURN_IF_ERROR(simgpu::NewGraphMemory(graph->context, device, parameters->bytesize, &memory));
  parameters->dptr = memory->address;
  const auto* first = reinterpret_cast<Node* const*>(dependencies);
  Node* node = simgpu::AddNode(graph, {first, first + count},
                               {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .bytes = parameters->bytesize});
  node->memory = std::move(memory);
  *handle = reinterpret_cast<CUgraphNode>(node);
  return CUDA_SUCCESS;
}

SIMGPU_API cuGraphAddMemFreeNode(CUgraphNode* handle, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                 CUdeviceptr address) {
  SIMGPU_ENTER();
  if (handle == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const auto found = simgpu::ByAddress().find(address);
  if (found == simgpu::ByAddress().end()) return CUDA_ERROR_INVALID_VALUE;
  const auto* first = reinterpret_cast<Node* const*>(dependencies);
  Node* node = simgpu::AddNode(reinterpret_cast<simgpu::Graph*>(graph), {first, first + count},
                               {.type = CU_GRAPH_NODE_TYPE_MEM_FREE});
  node->memory = found->second.lock();
  *handle = reinterpret_cast<CUgraphNode>(node);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const simgpu::Device* device = simgpu::FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const simgpu::Totals& totals = simgpu::TotalsOf(device);
  auto* bytes = static_cast<cuuint64_t*>(value);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
      *bytes = totals.used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      *bytes = totals.used_high;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
      *bytes = totals.reserved;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      *bytes = totals.reserved_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* value) {
  SIMGPU_ENTER();
  if (value == nullptr || *static_cast<const cuuint64_t*>(value) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const simgpu::Device* device = simgpu::FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  simgpu::Totals& totals = simgpu::TotalsOf(device);
  switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
      totals.used_high = totals.used;
      return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
      totals.reserved_high = totals.reserved;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

SIMGPU_API cuDeviceGraphMemTrim(CUdevice ordinal) {
  SIMGPU_ENTER();
  const Guard guard;
  const simgpu::Device* device = simgpu::FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  for (simgpu::GraphMemory* memory : simgpu::TotalsOf(device).all) {
    if (memory->live == nullptr) simgpu::GiveBack(memory);
  }
  return CUDA_SUCCESS;
}
