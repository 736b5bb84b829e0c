#include "tools/simgpu/nccl/operation.h"

#include <set>
#include <utility>

#include "tools/simgpu/nccl/data_types.h"
#include "tools/simgpu/nccl/driver.h"
#include "tools/simgpu/nccl/error.h"
#include "tools/simgpu/nccl/kernels.h"

namespace simgpu::nccl {
namespace {

bool IsRooted(OperationKind kind) {
  switch (kind) {
    case OperationKind::kBroadcast:
    case OperationKind::kGather:
    case OperationKind::kReduce:
    case OperationKind::kScatter:
    case OperationKind::kSend:
    case OperationKind::kReceive:
      return true;
    default:
      return false;
  }
}

bool IsReduction(OperationKind kind) {
  return kind == OperationKind::kAllReduce || kind == OperationKind::kReduce || kind == OperationKind::kReduceScatter;
}

ncclResult_t CheckReduction(const Operation& operation) {
  const std::int64_t index = static_cast<std::int64_t>(operation.reduction) - ncclNumOps;
  if (operation.reduction < 0) {
    return Fail(ncclInvalidArgument, "%s : invalid reduction operation %d", operation.function, operation.reduction);
  }
  if (index < 0) return ncclSuccess;
  std::lock_guard lock(operation.communicator->order_mutex);
  const auto& scaled = operation.communicator->scaled_sums;
  if (index >= static_cast<std::int64_t>(scaled.size()) || !scaled[static_cast<std::size_t>(index)].in_use) {
    return Fail(ncclInvalidArgument, "%s : reduction operation %d unknown to this communicator", operation.function,
                operation.reduction);
  }
  if (scaled[static_cast<std::size_t>(index)].type != operation.type) {
    return Fail(ncclInvalidArgument, "%s : reduction operation %d was made for another data type", operation.function,
                operation.reduction);
  }
  return ncclSuccess;
}

bool SendsData(const Operation& operation) {
  const bool is_root = operation.communicator->rank == operation.root;
  switch (operation.kind) {
    case OperationKind::kReceive:
      return false;
    case OperationKind::kBroadcast:
    case OperationKind::kScatter:
      return is_root;
    default:
      return true;
  }
}

bool ReceivesData(const Operation& operation) {
  const bool is_root = operation.communicator->rank == operation.root;
  switch (operation.kind) {
    case OperationKind::kSend:
      return false;
    case OperationKind::kReduce:
    case OperationKind::kGather:
      return is_root;
    default:
      return true;
  }
}

// The connections that genuine NCCL sets up at the first operation that needs them.
ncclResult_t Connect(const Operation& operation) {
  using Graph = Connections::Graph;
  using Direction = Connections::Direction;
  const Communicator& communicator = *operation.communicator;
  Connections& connections = *communicator.connections;
  const auto connect = [&](Graph graph, Direction direction, int peer) {
    if (peer == communicator.rank) return ncclSuccess;
    return connections.Connect(graph, direction, communicator.top_ranks[static_cast<std::size_t>(peer)]);
  };
  switch (operation.kind) {
    case OperationKind::kSend:
      return connect(Graph::kPointToPoint, Direction::kSend, operation.root);
    case OperationKind::kReceive:
      return connect(Graph::kPointToPoint, Direction::kReceive, operation.root);
    case OperationKind::kAlltoAll:
    case OperationKind::kGather:
    case OperationKind::kScatter: {
      const bool sends = operation.kind != OperationKind::kScatter || communicator.rank == operation.root;
      const bool receives = operation.kind != OperationKind::kGather || communicator.rank == operation.root;
      for (int peer = 0; peer < communicator.ranks; ++peer) {
        const bool to_peer = sends && (operation.kind != OperationKind::kGather || peer == operation.root);
        const bool from_peer = receives && (operation.kind != OperationKind::kScatter || peer == operation.root);
        ncclResult_t result = ncclSuccess;
        if (to_peer) result = connect(Graph::kPointToPoint, Direction::kSend, peer);
        if (result == ncclSuccess && from_peer) result = connect(Graph::kPointToPoint, Direction::kReceive, peer);
        if (result != ncclSuccess) return result;
      }
      return ncclSuccess;
    }
    default: {
      const int next = (communicator.rank + 1) % communicator.ranks;
      const int previous = (communicator.rank + communicator.ranks - 1) % communicator.ranks;
      const ncclResult_t result = connect(Graph::kRing, Direction::kReceive, previous);
      return result == ncclSuccess ? connect(Graph::kRing, Direction::kSend, next) : result;
    }
  }
}

bool IsCapturing(const Operation& operation) {
  ContextScope scope(operation.communicator->context);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return GetDriver()->cuStreamIsCapturing_(operation.stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// With one rank, a collective is a copy on the stream and no kernel of NCCL's.
ncclResult_t CopyToSelf(const Operation& operation) {
  if (operation.send == operation.receive || operation.receive == nullptr) return ncclSuccess;
  const CUresult result = GetDriver()->cuMemcpyDtoDAsync_(reinterpret_cast<CUdeviceptr>(operation.receive),
                                                          reinterpret_cast<CUdeviceptr>(operation.send),
                                                          operation.bytes(), operation.stream);
  if (result == CUDA_SUCCESS) return ncclSuccess;
  char text[64];
  return Fail(ncclUnhandledCudaError, "%s: copy of %zu bytes: %s", operation.function, operation.bytes(),
              Describe(result, text));
}

bool IsLocalCopy(const Operation& operation) {
  // A scaled sum isn't only a copy, and a send to oneself needs its receive.
  return operation.communicator->ranks == 1 && !operation.point_to_point() && operation.reduction < ncclNumOps;
}

}  // namespace

std::size_t Operation::bytes() const { return count * SizeOf(type); }

std::size_t Operation::message_bytes() const {
  switch (kind) {
    case OperationKind::kAlltoAll:
    case OperationKind::kReduceScatter:
    case OperationKind::kScatter:
      return bytes() * static_cast<std::size_t>(communicator->ranks);
    default:
      return bytes();
  }
}

ncclResult_t Check(Operation* operation) {
  operation->communicator = FindArgument(operation->function, operation->handle);
  if (operation->communicator == nullptr) return ncclInvalidArgument;
  const Communicator& communicator = *operation->communicator;
  communicator.AwaitMade();
  if (communicator.state() != ncclSuccess) {
    return Fail(communicator.state(), "%s: %s is out of use after an earlier error", operation->function,
                communicator.Name().c_str());
  }
  if (communicator.aborted() || communicator.revoked()) {
    return Fail(ncclInvalidUsage, "%s: %s has been %s", operation->function, communicator.Name().c_str(),
                communicator.aborted() ? "aborted" : "revoked");
  }
  if (SizeOf(operation->type) == 0) {
    return Fail(ncclInvalidArgument, "%s : invalid type %d", operation->function, operation->type);
  }
  if (IsRooted(operation->kind) && (operation->root < 0 || operation->root >= communicator.ranks)) {
    return Fail(ncclInvalidArgument, "%s : invalid root or peer %d (should be in the 0..%d range)", operation->function,
                operation->root, communicator.ranks);
  }
  if (IsReduction(operation->kind)) {
    if (const ncclResult_t result = CheckReduction(*operation); result != ncclSuccess) return result;
  }
  if (operation->count > 0 && ((SendsData(*operation) && operation->send == nullptr) ||
                               (ReceivesData(*operation) && operation->receive == nullptr))) {
    return Fail(ncclInvalidArgument, "%s : buffer argument is NULL", operation->function);
  }
  return ncclSuccess;
}

ncclResult_t Execute(std::vector<Operation>& operations) {
  std::erase_if(operations, [](const Operation& operation) { return operation.count == 0; });
  std::vector<std::unique_ptr<Task>> tasks;
  for (const Operation& operation : operations) {
    if (IsLocalCopy(operation)) continue;
    if (const ncclResult_t result = Connect(operation); result != ncclSuccess) return result;
    // What is captured runs at every launch of the graph, without the host: it can't wait for anyone, and carries no
    // data.
    if (operation.message_bytes() > kMessageMax || IsCapturing(operation)) continue;
    tasks.push_back(operation.point_to_point() ? MakePointToPointTask(operation) : MakeCollectiveTask(operation));
  }
  if (const ncclResult_t result = RunTasks(tasks); result != ncclSuccess) return result;

  // All sends and receives of a group are one kernel per communicator.
  std::set<std::pair<const Communicator*, CUstream>> exchanges;
  for (const Operation& operation : operations) {
    ContextScope scope(operation.communicator->context);
    if (operation.point_to_point() && !exchanges.emplace(operation.communicator.get(), operation.stream).second) {
      continue;
    }
    const ncclResult_t result = IsLocalCopy(operation) ? CopyToSelf(operation) : LaunchKernel(operation);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

}  // namespace simgpu::nccl
