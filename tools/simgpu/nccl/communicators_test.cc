// Communicators out of communicators, made in the background, and the memory of all of them.
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <thread>

#include "tools/simgpu/nccl/api.h"
#include "tools/simgpu/nccl/test_ranks.h"

extern "C" ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, std::uint64_t* value);

namespace simgpu::nccl {
namespace {

// Free device memory as the driver reports it.
std::size_t FreeBytes() {
  using MemGetInfo = int (*)(std::size_t*, std::size_t*);
  static const auto get_info = reinterpret_cast<MemGetInfo>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemGetInfo_v2"));
  std::size_t free_bytes = 0, total = 0;
  RANK_CHECK(get_info != nullptr && get_info(&free_bytes, &total) == 0);
  return free_bytes;
}

std::uint64_t Stat(ncclComm_t comm, ncclCommMemStat_t stat) {
  std::uint64_t value = 0;
  RANK_CHECK(ncclCommMemStats(comm, stat, &value) == ncclSuccess);
  return value;
}

int Sum(ncclComm_t comm, int value) {
  const Buffer<int> data(1);
  data[0] = value;
  RANK_CHECK(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, nullptr) == ncclSuccess);
  return data[0];
}

// Makes the context and has the kernels loaded, which takes memory that is not a communicator's.
void WarmUp() {
  ncclComm_t comms[2] = {};
  RANK_CHECK(ncclCommInitAll(comms, 2, nullptr) == ncclSuccess);
  const Buffer<int> data(2);
  RANK_CHECK(ncclGroupStart() == ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    int* mine = &data[static_cast<std::size_t>(rank)];
    RANK_CHECK(ncclAllReduce(mine, mine, 1, ncclInt32, ncclSum, comms[rank], nullptr) == ncclSuccess);
    RANK_CHECK(ncclSend(mine, 1, ncclInt32, 1 - rank, comms[rank], nullptr) == ncclSuccess);
    RANK_CHECK(ncclRecv(mine, 1, ncclInt32, 1 - rank, comms[rank], nullptr) == ncclSuccess);
  }
  RANK_CHECK(ncclGroupEnd() == ncclSuccess);
  for (const ncclComm_t comm : comms) RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("device memory is taken when it is needed, and given back") {
  constexpr int kRanks = 3;
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const std::size_t at_start = FreeBytes();
    const ncclComm_t comm = Join(kRanks, id, rank);
    const std::size_t joined = FreeBytes();
    RANK_CHECK(joined < at_start);
    RANK_CHECK(Stat(comm, ncclStatGpuMemPersist) == at_start - joined);
    RANK_CHECK(Stat(comm, ncclStatGpuMemSuspend) == 0);

    RANK_CHECK(Sum(comm, 1) == kRanks);
    const std::size_t ring = joined - FreeBytes();
    RANK_CHECK(ring > 0);
    RANK_CHECK(Stat(comm, ncclStatGpuMemSuspend) == ring);
    RANK_CHECK(Sum(comm, 2) == 2 * kRanks);
    RANK_CHECK(joined - FreeBytes() == ring);  // connected already

    const Buffer<int> data(2);
    const std::size_t before_send = FreeBytes();
    const auto exchange = [&](int partner) {
      RANK_CHECK(ncclGroupStart() == ncclSuccess);
      RANK_CHECK(ncclSend(&data[0], 1, ncclInt32, partner, comm, nullptr) == ncclSuccess);
      RANK_CHECK(ncclRecv(&data[1], 1, ncclInt32, partner, comm, nullptr) == ncclSuccess);
      RANK_CHECK(ncclGroupEnd() == ncclSuccess);
      return before_send - FreeBytes();
    };
    if (rank < 2) {
      const std::size_t first_peer = exchange(1 - rank);
      RANK_CHECK(first_peer > 0);
      RANK_CHECK(exchange(1 - rank) == first_peer);
    }
    RANK_CHECK(Stat(comm, ncclStatGpuMemTotal) ==
               Stat(comm, ncclStatGpuMemPersist) + Stat(comm, ncclStatGpuMemSuspend));
    RANK_CHECK(Sum(comm, 0) == 0);
    RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
    return 0;
  };
  const auto measured = [&](int rank) {
    WarmUp();
    const std::size_t before = FreeBytes();
    const int status = body(rank);
    RANK_CHECK(FreeBytes() == before);
    return status;
  };
  CHECK(RunRanks(kRanks, measured) == AllZero(kRanks));
}

TEST_CASE("splits group by colour, order by key, and share connections if asked") {
  constexpr int kRanks = 4;
  const bool share = GENERATE(false, true);
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    WarmUp();
    const ncclComm_t parent = Join(kRanks, id, rank);
    RANK_CHECK(Sum(parent, 1) == kRanks);

    // The same ranks in the same order: with sharing, every connection is there already.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = share ? 1 : 0;
    ncclComm_t twin = nullptr;
    RANK_CHECK(ncclCommSplit(parent, 0, rank, &twin, &config) == ncclSuccess);
    const std::size_t before = FreeBytes();
    RANK_CHECK(Sum(twin, 1) == kRanks);
    RANK_CHECK((FreeBytes() == before) == share);

    // Even and odd, in reverse order; the last rank stays out.
    ncclComm_t child = nullptr;
    const int color = rank == kRanks - 1 ? NCCL_SPLIT_NOCOLOR : rank % 2;
    RANK_CHECK(ncclCommSplit(parent, color, -rank, &child, nullptr) == ncclSuccess);
    RANK_CHECK((child == nullptr) == (color == NCCL_SPLIT_NOCOLOR));
    if (child != nullptr) {
      int ranks = 0, mine = -1;
      RANK_CHECK(ncclCommCount(child, &ranks) == ncclSuccess && ranks == (color == 0 ? 2 : 1));
      RANK_CHECK(ncclCommUserRank(child, &mine) == ncclSuccess && mine == (rank == 0 ? 1 : 0));
      RANK_CHECK(Sum(child, rank) == (color == 0 ? 0 + 2 : 1));
      RANK_CHECK(ncclCommDestroy(child) == ncclSuccess);
    }
    // The parent may go before its children, whatever they share.
    RANK_CHECK(ncclCommDestroy(parent) == ncclSuccess);
    RANK_CHECK(Sum(twin, 2) == 2 * kRanks);
    return ncclCommDestroy(twin) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(kRanks, body) == AllZero(kRanks));
}

TEST_CASE("a communicator shrinks to its surviving ranks") {
  constexpr int kRanks = 3;
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(kRanks, id, rank);
    RANK_CHECK(Sum(comm, 1) == kRanks);
    if (rank == 1) _exit(7);
    const Buffer<int> data(1);
    RANK_CHECK(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, nullptr) != ncclSuccess);
    int excluded[] = {1};
    ncclComm_t rest = nullptr;
    RANK_CHECK(ncclCommShrink(comm, excluded, 1, &rest, nullptr, NCCL_SHRINK_ABORT) == ncclSuccess);
    RANK_CHECK(Sum(rest, 5) == 10);
    RANK_CHECK(ncclCommDestroy(rest) == ncclSuccess);
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(kRanks, body) == std::vector<int>{0, 7, 0});
}

TEST_CASE("a revoked communicator refuses operations and still splits") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    const Buffer<int> data(1);
    if (rank == 0) {
      // Blocked in an operation that rank 1 never makes, until another thread revokes.
      std::thread revoker([comm] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        RANK_CHECK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT) == ncclSuccess);
      });
      RANK_CHECK(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, nullptr) != ncclSuccess);
      revoker.join();
    } else {
      RANK_CHECK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT) == ncclSuccess);
    }
    RANK_CHECK(ncclAllReduce(data.get(), data.get(), 1, ncclInt32, ncclSum, comm, nullptr) != ncclSuccess);
    ncclComm_t fresh = nullptr;
    RANK_CHECK(ncclCommSplit(comm, 0, rank, &fresh, nullptr) == ncclSuccess);
    RANK_CHECK(Sum(fresh, 1) == 2);
    RANK_CHECK(ncclCommDestroy(fresh) == ncclSuccess);
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

void AwaitReady(ncclComm_t comm) {
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    RANK_CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  RANK_CHECK(state == ncclSuccess);
}

TEST_CASE("a non-blocking communicator is made in the background") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int) {
    // One thread makes both ranks, one after the other: the first call can't wait for the second.
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comms[2] = {};
    for (int rank = 0; rank < 2; ++rank) {
      RANK_CHECK(ncclCommInitRankConfig(&comms[rank], 2, id, rank, &config) == ncclInProgress);
      RANK_CHECK(comms[rank] != nullptr);
    }
    for (const ncclComm_t comm : comms) AwaitReady(comm);
    ncclComm_t children[2] = {};
    for (int rank = 0; rank < 2; ++rank) {
      const ncclResult_t result = ncclCommSplit(comms[rank], 0, rank, &children[rank], nullptr);
      RANK_CHECK(result == ncclSuccess || result == ncclInProgress);
    }
    for (const ncclComm_t comm : comms) AwaitReady(comm);
    for (int rank = 0; rank < 2; ++rank) {
      RANK_CHECK(children[rank] != nullptr);
      RANK_CHECK(ncclCommFinalize(children[rank]) == ncclSuccess);
      RANK_CHECK(ncclCommDestroy(children[rank]) == ncclSuccess);
      RANK_CHECK(ncclCommDestroy(comms[rank]) == ncclSuccess);
    }
    return 0;
  };
  CHECK(RunRanks(1, body) == AllZero(1));
}

TEST_CASE("configurations of other releases are read as far as they go") {
  const auto body = [](int) {
    const ncclUniqueId id = MakeId();
    struct {
      ncclConfig_t known = NCCL_CONFIG_INITIALIZER;
      int newer[4] = {1, 2, 3, 4};
    } longer;
    longer.known.size = sizeof longer;
    ncclComm_t comm = nullptr;
    RANK_CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, &longer.known) == ncclSuccess);
    RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
    ncclConfig_t wrong = NCCL_CONFIG_INITIALIZER;
    wrong.magic = 0;
    RANK_CHECK(ncclCommInitRankConfig(&comm, 1, id, 0, &wrong) == ncclInvalidArgument);
    RANK_CHECK(std::strstr(ncclGetLastError(nullptr), "NCCL_CONFIG_INITIALIZER") != nullptr);
    return 0;
  };
  CHECK(RunRanks(1, body) == AllZero(1));
}

}  // namespace
}  // namespace simgpu::nccl
