// Two communicators on two simulated GPUs, made one by one, that both move data: NCCL gets memory for each, when it is
// made and later on.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <thread>

#include "tests/programs/annotations/nccl.h"

extern "C" int ncclGetUniqueId(ncclUniqueId*);

namespace {

constexpr int kRanks = 2;

bool RunRank(int rank, const ncclUniqueId& first_id, const ncclUniqueId& second_id) {
  if (cudaSetDevice(rank) != cudaSuccess) return false;
  void* data = nullptr;
  cudaStream_t stream = nullptr;
  if (cudaMalloc(&data, 1 << 20) != cudaSuccess || cudaStreamCreate(&stream) != cudaSuccess) return false;
  ncclComm* first = nullptr;
  ncclComm* second = nullptr;
  bool good = ncclCommInitRank(&first, kRanks, first_id, rank) == 0;
  good = good && ncclAllReduce(data, data, 1 << 10, 7, 0, first, stream) == 0;
  good = good && ncclCommInitRank(&second, kRanks, second_id, rank) == 0;
  good = good && ncclGroupStart() == 0 && ncclSend(data, 1 << 10, 7, 1 - rank, second, stream) == 0 &&
         ncclRecv(static_cast<char*>(data) + (1 << 19), 1 << 10, 7, 1 - rank, second, stream) == 0 &&
         ncclGroupEnd() == 0;
  good = good && cudaStreamSynchronize(stream) == cudaSuccess;
  good = good && ncclCommDestroy(second) == 0 && ncclCommDestroy(first) == 0;
  return good && cudaFree(data) == cudaSuccess;
}

}  // namespace

int main() {
  ncclUniqueId ids[2];
  if (ncclGetUniqueId(&ids[0]) != 0 || ncclGetUniqueId(&ids[1]) != 0) return 2;
  bool good[kRanks] = {};
  std::thread other([&] { good[1] = RunRank(1, ids[0], ids[1]); });
  good[0] = RunRank(0, ids[0], ids[1]);
  other.join();
  return good[0] && good[1] ? 0 : 1;
}
