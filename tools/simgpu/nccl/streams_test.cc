// Operations on streams: the kernels that profilers see, and stream capture.
#include <cuda.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tools/simgpu/driver/export_table.h"
#include "tools/simgpu/nccl/test_ranks.h"

namespace simgpu::nccl {
namespace {

std::vector<std::string> kernels;

void OnActivity(void*, const Activity* activity) {
  if (activity->kind == ActivityKind::kKernel) kernels.emplace_back(activity->name);
}

void WatchKernels() {
  const void* table = nullptr;
  RANK_CHECK(cuGetExportTable(&table, &kExportTableId) == CUDA_SUCCESS);
  RANK_CHECK(static_cast<const ExportTable*>(table)->subscribe_activity(OnActivity, nullptr) == CUDA_SUCCESS);
}

// As `c++filt` would print it, without the parameter.
std::string Plain(const std::string& mangled) {
  const std::size_t start = mangled.find("ncclDevKernel");
  return mangled.substr(start, mangled.find("24ncclDevKernelArgs") - start);
}

std::vector<std::string> TakeKernels() {
  std::vector<std::string> plain;
  for (const std::string& kernel : kernels) plain.push_back(Plain(kernel));
  kernels.clear();
  return plain;
}

TEST_CASE("each operation launches the kernel that genuine NCCL would, sends and receives of a group one together") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    WatchKernels();
    const Buffer<char> data(1024);
    char* at = data.get();
    RANK_CHECK(ncclAllReduce(at, at, 4, ncclBfloat16, ncclMax, comm, nullptr) == ncclSuccess);
    RANK_CHECK(kernels.front() == "_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE");
    RANK_CHECK(ncclAllGather(at, at, 4, ncclFloat32, comm, nullptr) == ncclSuccess);
    RANK_CHECK(ncclReduceScatter(at, at, 4, ncclFloat8e4m3, ncclSum, comm, nullptr) == ncclSuccess);
    RANK_CHECK(ncclBroadcast(at, at, 4, ncclInt8, 1, comm, nullptr) == ncclSuccess);
    RANK_CHECK(ncclReduce(at, at, 4, ncclInt64, ncclSum, 1, comm, nullptr) == ncclSuccess);
    const std::vector<std::string> expected = {
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_AllGather_RING_LL",
        "ncclDevKernel_ReduceScatter_Sum_f8e4m3_RING_LL", "ncclDevKernel_Broadcast_RING_LL",
        "ncclDevKernel_Reduce_Sum_u64_RING_LL"};
    RANK_CHECK(TakeKernels() == expected);

    RANK_CHECK(ncclGroupStart() == ncclSuccess);
    RANK_CHECK(ncclSend(at, 4, ncclFloat32, 1 - rank, comm, nullptr) == ncclSuccess);
    RANK_CHECK(ncclRecv(at + 512, 4, ncclFloat32, 1 - rank, comm, nullptr) == ncclSuccess);
    RANK_CHECK(kernels.empty());
    RANK_CHECK(ncclGroupEnd() == ncclSuccess);
    RANK_CHECK(TakeKernels() == std::vector<std::string>{"ncclDevKernel_SendRecv"});

    // Nothing to do, nothing launched.
    RANK_CHECK(ncclAllReduce(at, at, 0, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess);
    RANK_CHECK(kernels.empty());
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

TEST_CASE("a captured operation becomes a node and waits for nobody") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    const Buffer<float> data(1);
    if (rank == 0) {  // alone
      CUstream stream = nullptr;
      CUgraph graph = nullptr;
      RANK_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
      RANK_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
      RANK_CHECK(ncclAllReduce(data.get(), data.get(), 1, ncclFloat32, ncclSum, comm, stream) == ncclSuccess);
      RANK_CHECK(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
      std::size_t nodes = 0;
      RANK_CHECK(cuGraphGetNodes(graph, nullptr, &nodes) == CUDA_SUCCESS && nodes == 1);
      CUgraphExec exec = nullptr;
      RANK_CHECK(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
      WatchKernels();
      RANK_CHECK(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
      RANK_CHECK(TakeKernels() == std::vector<std::string>{"ncclDevKernel_AllReduce_Sum_f32_RING_LL"});
    }
    // The communicator is as it was: both agree on what comes next.
    data[0] = 1;
    RANK_CHECK(ncclAllReduce(data.get(), data.get(), 1, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess);
    RANK_CHECK(data[0] == 2);
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

}  // namespace
}  // namespace simgpu::nccl
