// The data-moving calls of the API: what was asked for, and how it is carried out.
#ifndef TOOLS_SIMGPU_NCCL_OPERATION_H_
#define TOOLS_SIMGPU_NCCL_OPERATION_H_

#include <cuda.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tools/simgpu/nccl/communicator.h"
#include "tools/simgpu/nccl/task.h"

namespace simgpu::nccl {

enum class OperationKind : std::uint32_t {
  kAllGather,
  kAllReduce,
  kAlltoAll,
  kBroadcast,
  kGather,
  kReduce,
  kReduceScatter,
  kScatter,
  kSend,
  kReceive,
};

struct Operation {
  const char* function;  // name in the API, for texts
  OperationKind kind;
  const void* send = nullptr;
  void* receive = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = ncclNumTypes;
  ncclRedOp_t reduction = ncclSum;
  int root = 0;  // of a rooted collective; the peer of a send or receive
  ncclComm_t handle = nullptr;
  CUstream stream = nullptr;

  // Filled by Check().
  std::shared_ptr<Communicator> communicator;

  bool point_to_point() const { return kind == OperationKind::kSend || kind == OperationKind::kReceive; }
  std::size_t bytes() const;
  // What this rank, or the root, brings at most; decides alike on all ranks whether data is moved.
  std::size_t message_bytes() const;
};

// Checks the arguments as genuine NCCL does, and completes `operation`.
ncclResult_t Check(Operation* operation);

// Carries out the operations of one group: memory for connections, data, kernels.
ncclResult_t Execute(std::vector<Operation>& operations);

// The two kinds of task that move the data of an operation.
std::unique_ptr<Task> MakeCollectiveTask(const Operation& operation);
std::unique_ptr<Task> MakePointToPointTask(const Operation& operation);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_OPERATION_H_
