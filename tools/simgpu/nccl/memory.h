// Device and host memory of communicators, with the calls and the sizes of genuine NCCL.
#ifndef TOOLS_SIMGPU_NCCL_MEMORY_H_
#define TOOLS_SIMGPU_NCCL_MEMORY_H_

#include <cuda.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace simgpu::nccl {

// Device memory the way genuine NCCL gets it since it uses virtual memory management: cuMemCreate, cuMemAddressReserve,
// cuMemMap, cuMemSetAccess. `*bytes` grows to the allocation granularity. The context of `device` must be current.
ncclResult_t AllocateDevice(CUdevice device, std::size_t* bytes, CUdeviceptr* address);

// Gives back what AllocateDevice got; the size is asked of the driver, as genuine NCCL does.
ncclResult_t FreeDevice(CUdeviceptr address);

// What a communicator holds on the device for its connections. Communicators that ncclCommSplit made with splitShare
// use one and the same object, so that connections to the same peers are there only once.
class Connections {
 public:
  // The two graphs of connections that genuine NCCL keeps apart (connIndex 0 and 1).
  enum class Graph : std::uint8_t { kRing, kPointToPoint };
  enum class Direction : std::uint8_t { kSend, kReceive };

  Connections(CUcontext context, CUdevice device);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // Connects `peer` (a rank of the topmost parent) in all channels of the graph; nothing if it is connected.
  ncclResult_t Connect(Graph graph, Direction direction, int peer);
  std::uint64_t bytes() const;

 private:
  using Key = std::tuple<Graph, Direction, int>;

  const CUcontext context_;
  const CUdevice device_;
  mutable std::mutex mutex_;
  std::map<Key, std::vector<CUdeviceptr>> buffers_;  // guarded by mutex_
  std::uint64_t bytes_ = 0;                          // guarded by mutex_
};

// What a communicator holds from its making to its end: its device-side description, and pinned host memory for the
// work queue between host and kernels.
class CoreMemory {
 public:
  static ncclResult_t Allocate(CUcontext context, CUdevice device, std::unique_ptr<CoreMemory>* memory);
  ~CoreMemory();
  CoreMemory(const CoreMemory&) = delete;
  CoreMemory& operator=(const CoreMemory&) = delete;

  std::uint64_t device_bytes() const { return device_bytes_; }

 private:
  explicit CoreMemory(CUcontext context) : context_(context) {}

  const CUcontext context_;
  std::vector<CUdeviceptr> device_;
  std::uint64_t device_bytes_ = 0;
  void* host_ = nullptr;
};

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_MEMORY_H_
