// The API of operations: collectives, sends and receives, groups, reduction operators.
#include <cstring>

#include "tools/simgpu/nccl/annotation.h"
#include "tools/simgpu/nccl/api.h"
#include "tools/simgpu/nccl/data_types.h"
#include "tools/simgpu/nccl/error.h"
#include "tools/simgpu/nccl/group.h"
#include "tools/simgpu/nccl/operation.h"

namespace simgpu::nccl {
namespace {

// Annotations are made before the arguments are checked, as in the genuine library; its payloads say 0 for no
// communicator.
std::uint64_t HashOf(ncclComm_t comm) {
  const auto communicator = Find(comm);
  return communicator == nullptr ? 0 : communicator->hash;
}

// A call of the API, in parts.
struct Call {
  const RangeName& name;
  OperationKind kind;
  ncclComm_t communicator;
  cudaStream_t stream;
};
struct Message {
  const void* send;
  void* receive;
  std::size_t count;
  ncclDataType_t type;
};
struct Details {
  ncclRedOp_t reduction = ncclSum;
  int root = 0;
};

ncclResult_t Enqueue(const Call& call, const Message& message, const Details& details = {}) {
  return Submit(Operation{.function = call.name.function(),
                          .kind = call.kind,
                          .send = message.send,
                          .receive = message.receive,
                          .count = message.count,
                          .type = message.type,
                          .reduction = details.reduction,
                          .root = details.root,
                          .handle = call.communicator,
                          .stream = call.stream,
                          .communicator = {}});
}

}  // namespace
}  // namespace simgpu::nccl

using namespace simgpu::nccl;  // NOLINT: this file is the API, one definition per function of nccl.h

NCCL_API(ncclResult_t, ncclAllGather, const void* sendbuff, void* recvbuff, std::size_t sendcount,
         ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclAllGather");
  Range range(name, Schema::kAllGather, MessagePayload{HashOf(comm), sendcount * SizeOf(datatype)});
  return Enqueue({name, OperationKind::kAllGather, comm, stream}, {sendbuff, recvbuff, sendcount, datatype});
}

NCCL_API(ncclResult_t, ncclAllReduce, const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
         ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclAllReduce");
  Range range(name, Schema::kAllReduce, ReductionPayload{HashOf(comm), count * SizeOf(datatype), op});
  return Enqueue({name, OperationKind::kAllReduce, comm, stream}, {sendbuff, recvbuff, count, datatype},
                 {.reduction = op});
}

NCCL_API(ncclResult_t, ncclAlltoAll, const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
         ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclAlltoAll");
  Range range(name, Schema::kAlltoAll, MessagePayload{HashOf(comm), count * SizeOf(datatype)});
  return Enqueue({name, OperationKind::kAlltoAll, comm, stream}, {sendbuff, recvbuff, count, datatype});
}

NCCL_API(ncclResult_t, ncclBroadcast, const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
         int root, ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclBroadcast");
  Range range(name, Schema::kBroadcast, RootedPayload{HashOf(comm), count * SizeOf(datatype), root});
  return Enqueue({name, OperationKind::kBroadcast, comm, stream}, {sendbuff, recvbuff, count, datatype},
                 {.root = root});
}

// Through the exported function, as the genuine library does: an interposer of ncclBroadcast sees this call too.
NCCL_API(ncclResult_t, ncclBcast, void* buff, std::size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
         cudaStream_t stream) {
  return ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

NCCL_API(ncclResult_t, ncclGather, const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
         int root, ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclGather");
  Range range(name, Schema::kGather, RootedPayload{HashOf(comm), count * SizeOf(datatype), root});
  return Enqueue({name, OperationKind::kGather, comm, stream}, {sendbuff, recvbuff, count, datatype}, {.root = root});
}

NCCL_API(ncclResult_t, ncclReduce, const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
         ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclReduce");
  Range range(name, Schema::kReduce, ReducePayload{HashOf(comm), count * SizeOf(datatype), root, op});
  return Enqueue({name, OperationKind::kReduce, comm, stream}, {sendbuff, recvbuff, count, datatype},
                 {.reduction = op, .root = root});
}

NCCL_API(ncclResult_t, ncclReduceScatter, const void* sendbuff, void* recvbuff, std::size_t recvcount,
         ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclReduceScatter");
  Range range(name, Schema::kReduceScatter, ReductionPayload{HashOf(comm), recvcount * SizeOf(datatype), op});
  return Enqueue({name, OperationKind::kReduceScatter, comm, stream}, {sendbuff, recvbuff, recvcount, datatype},
                 {.reduction = op});
}

NCCL_API(ncclResult_t, ncclScatter, const void* sendbuff, void* recvbuff, std::size_t count, ncclDataType_t datatype,
         int root, ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclScatter");
  Range range(name, Schema::kScatter, RootedPayload{HashOf(comm), count * SizeOf(datatype), root});
  return Enqueue({name, OperationKind::kScatter, comm, stream}, {sendbuff, recvbuff, count, datatype}, {.root = root});
}

NCCL_API(ncclResult_t, ncclSend, const void* sendbuff, std::size_t count, ncclDataType_t datatype, int peer,
         ncclComm_t comm, cudaStream_t stream) {
  static constinit RangeName name("ncclSend");
  Range range(name, Schema::kSend, RootedPayload{HashOf(comm), count * SizeOf(datatype), peer});
  return Enqueue({name, OperationKind::kSend, comm, stream}, {sendbuff, nullptr, count, datatype}, {.root = peer});
}

NCCL_API(ncclResult_t, ncclRecv, void* recvbuff, std::size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
         cudaStream_t stream) {
  static constinit RangeName name("ncclRecv");
  Range range(name, Schema::kRecv, RootedPayload{HashOf(comm), count * SizeOf(datatype), peer});
  return Enqueue({name, OperationKind::kReceive, comm, stream}, {nullptr, recvbuff, count, datatype}, {.root = peer});
}

NCCL_API(ncclResult_t, ncclGroupStart) {
  static constinit RangeName name("ncclGroupStart");
  Range range(name);
  StartGroup();
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclGroupEnd) {
  static constinit RangeName name("ncclGroupEnd");
  Range range(name);
  return EndGroup();
}

NCCL_API(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t* simInfo) {
  static constinit RangeName name("ncclGroupSimulateEnd");
  Range range(name);
  DropGroup();
  if (simInfo == nullptr) return Fail(ncclInvalidArgument, "ncclGroupSimulateEnd : simInfo argument is NULL");
  simInfo->estimatedTime = NCCL_UNDEF_FLOAT;  // there is no model of time
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclRedOpCreatePreMulSum, ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
         ncclScalarResidence_t residence, ncclComm_t comm) {
  const auto communicator = FindArgument("ncclRedOpCreatePreMulSum", comm);
  if (communicator == nullptr) return ncclInvalidArgument;
  if (op == nullptr || scalar == nullptr || SizeOf(datatype) == 0) {
    return Fail(ncclInvalidArgument,
                "ncclRedOpCreatePreMulSum : operator or scalar is NULL, or data type %d is invalid", datatype);
  }
  ScaledSum scaled{.in_use = true, .type = datatype};
  if (residence == ncclScalarDevice) {
    scaled.device_scalar = scalar;
  } else {
    std::memcpy(scaled.scalar, scalar, SizeOf(datatype));
  }
  std::lock_guard lock(communicator->order_mutex);
  auto& list = communicator->scaled_sums;
  std::size_t index = 0;
  while (index < list.size() && list[index].in_use) ++index;
  if (index == list.size()) list.emplace_back();
  list[index] = scaled;
  *op = static_cast<ncclRedOp_t>(static_cast<int>(ncclNumOps) + static_cast<int>(index));
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclRedOpDestroy, ncclRedOp_t op, ncclComm_t comm) {
  const auto communicator = FindArgument("ncclRedOpDestroy", comm);
  if (communicator == nullptr) return ncclInvalidArgument;
  std::lock_guard lock(communicator->order_mutex);
  const std::int64_t index = static_cast<std::int64_t>(op) - ncclNumOps;
  auto& list = communicator->scaled_sums;
  if (index < 0 || index >= static_cast<std::int64_t>(list.size()) || !list[static_cast<std::size_t>(index)].in_use) {
    return Fail(ncclInvalidArgument, "ncclRedOpDestroy : operator %d unknown to this communicator", op);
  }
  list[static_cast<std::size_t>(index)].in_use = false;
  return ncclSuccess;
}
