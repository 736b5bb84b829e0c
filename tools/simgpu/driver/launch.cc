// Kernel launches. Nothing runs: a launch is counted, its code is loaded, and a capture gets a node.
#include "tools/simgpu/driver/launch.h"

#include <algorithm>

#include "tools/simgpu/driver/activity.h"
#include "tools/simgpu/driver/graph.h"
#include "tools/simgpu/driver/module.h"

namespace simgpu {
namespace {

std::atomic<std::uint64_t> kernels{0};

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
};

Operation Describe(CUfunction function, const Shape& shape) {
  Operation operation = {
      .type = CU_GRAPH_NODE_TYPE_KERNEL, .name = FunctionName(function), .shared_bytes = shape.shared_bytes};
  std::copy(std::begin(shape.grid), std::end(shape.grid), operation.grid);
  std::copy(std::begin(shape.block), std::end(shape.block), operation.block);
  return operation;
}

CUresult Launch(CUfunction function, const Shape& shape, CUstream handle) {
  SIMGPU_ENTER();
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] == 0 || shape.block[i] == 0) return CUDA_ERROR_INVALID_VALUE;
  }
  if (shape.block[0] > 1024 || shape.block[1] > 1024 || shape.block[2] > 64 ||
      shape.block[0] * shape.block[1] * shape.block[2] > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool told = HasActivitySubscriber();
  Activity place = {};
  Operation operation;
  {
    const Guard guard;
    Stream* stream = nullptr;
    SIMGPU_RETURN_IF_ERROR(FindStream(handle, &stream));
    SIMGPU_RETURN_IF_ERROR(UseFunction(function, stream->context));
    if (stream->capture != nullptr) {
      if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      Node* node = CaptureNode(stream, Describe(function, shape));
      node->function = function;
      node->kernel = {.func = function,
                      .gridDimX = shape.grid[0],
                      .gridDimY = shape.grid[1],
                      .gridDimZ = shape.grid[2],
                      .blockDimX = shape.block[0],
                      .blockDimY = shape.block[1],
                      .blockDimZ = shape.block[2],
                      .sharedMemBytes = shape.shared_bytes,
                      .kernelParams = nullptr,
                      .extra = nullptr,
                      .kern = nullptr,
                      .ctx = ToHandle(stream->context)};
      return CUDA_SUCCESS;
    }
    CountOperation(stream);
    kernels.fetch_add(1, std::memory_order_relaxed);
    if (!told) return CUDA_SUCCESS;
    place = PlaceOf(*stream);
    operation = Describe(function, shape);
  }
  place.correlation = NextCorrelation();
  TellActivity(operation, place);
  return CUDA_SUCCESS;
}

}  // namespace

std::uint64_t KernelCount() { return kernels.load(std::memory_order_relaxed); }

}  // namespace simgpu

SIMGPU_API cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void**, void**) {
  return simgpu::Launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream);
}

SIMGPU_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void**) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Launch(function,
                        {{config->gridDimX, config->gridDimY, config->gridDimZ},
                         {config->blockDimX, config->blockDimY, config->blockDimZ},
                         config->sharedMemBytes},
                        config->hStream);
}

SIMGPU_API cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                     CUstream stream, void**) {
  return simgpu::Launch(function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream);
}

// ---- Occupancy, as if nothing but the number of threads limited it.

SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_size, size_t) {
  SIMGPU_ENTER();
  if (blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const auto threads = static_cast<int>(simgpu::GetProfile()->Get("threads_per_multiprocessor", 2048));
  const auto most = static_cast<int>(simgpu::GetProfile()->Get("blocks_per_multiprocessor", 32));
  *blocks = std::clamp(threads / block_size, 1, most);
  return CUDA_SUCCESS;
}

SIMGPU_API cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int block_size,
                                                                size_t shared_bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, shared_bytes);
}

SIMGPU_API cuOccupancyMaxPotentialBlockSize(int* least_grid, int* block_size, CUfunction function, CUoccupancyB2DSize,
                                            size_t shared_bytes, int limit) {
  SIMGPU_ENTER();
  if (least_grid == nullptr || block_size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *block_size = limit > 0 ? std::min(limit, 1024) : 1024;
  int blocks = 0;
  SIMGPU_RETURN_IF_ERROR(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, *block_size, shared_bytes));
  *least_grid = blocks * static_cast<int>(simgpu::GetProfile()->Get("multiprocessors"));
  return CUDA_SUCCESS;
}

SIMGPU_API cuOccupancyMaxPotentialBlockSizeWithFlags(int* least_grid, int* block_size, CUfunction function,
                                                     CUoccupancyB2DSize shared, size_t shared_bytes, int limit,
                                                     unsigned) {
  return cuOccupancyMaxPotentialBlockSize(least_grid, block_size, function, shared, shared_bytes, limit);
}

SIMGPU_API cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction, int blocks, int block_size) {
  SIMGPU_ENTER();
  if (bytes == nullptr || blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  *bytes = simgpu::GetProfile()->Get("shared.per_multiprocessor_bytes", 102'400) / static_cast<unsigned>(blocks);
  return CUDA_SUCCESS;
}

SIMGPU_API cuOccupancyMaxActiveClusters(int* clusters, CUfunction, const CUlaunchConfig*) {
  SIMGPU_ENTER();
  if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *clusters = static_cast<int>(simgpu::GetProfile()->Get("multiprocessors")) / 8;
  return CUDA_SUCCESS;
}

SIMGPU_API cuOccupancyMaxPotentialClusterSize(int* size, CUfunction, const CUlaunchConfig*) {
  SIMGPU_ENTER();
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *size = 8;
  return CUDA_SUCCESS;
}

// ---- Descriptions of tensors, which only kernels read

SIMGPU_API cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                  const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                  CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (map == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *map = {};
  return CUDA_SUCCESS;
}

SIMGPU_API cuTensorMapReplaceAddress(CUtensorMap* map, void*) {
  return map == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
