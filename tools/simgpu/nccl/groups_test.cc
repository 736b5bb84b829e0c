// Groups: several operations, several communicators, several devices of one process.
#include <catch2/catch.hpp>

#include "tools/simgpu/nccl/test_ranks.h"

namespace simgpu::nccl {
namespace {

std::size_t Index(int value) { return static_cast<std::size_t>(value); }

TEST_CASE("sends and receives of one group pair up in any order") {
  constexpr int kRanks = 4;
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(kRanks, id, rank);
    // An all-to-all of different sizes: rank r sends r + 1 elements to everybody, itself included.
    const Buffer<int> out(kRanks), in(kRanks * kRanks);
    for (int i = 0; i < kRanks; ++i) out[Index(i)] = 100 * rank + i;
    RANK_CHECK(ncclGroupStart() == ncclSuccess);
    for (int peer = 0; peer < kRanks; ++peer) {
      RANK_CHECK(ncclRecv(&in[Index(peer * kRanks)], Index(peer + 1), ncclInt32, peer, comm, nullptr) == ncclSuccess);
      RANK_CHECK(ncclSend(out.get(), Index(rank + 1), ncclInt32, peer, comm, nullptr) == ncclSuccess);
    }
    RANK_CHECK(ncclGroupEnd() == ncclSuccess);
    for (int peer = 0; peer < kRanks; ++peer) {
      for (int i = 0; i <= peer; ++i) RANK_CHECK(in[Index(peer * kRanks + i)] == 100 * peer + i);
    }
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(kRanks, body) == AllZero(kRanks));
}

TEST_CASE("more sends than a mailbox holds arrive in order") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    constexpr int kMessages = 100;
    const Buffer<int> data(kMessages);
    RANK_CHECK(ncclGroupStart() == ncclSuccess);
    for (int i = 0; i < kMessages; ++i) {
      if (rank == 0) {
        data[Index(i)] = i;
        RANK_CHECK(ncclSend(&data[Index(i)], 1, ncclInt32, 1, comm, nullptr) == ncclSuccess);
      } else {
        RANK_CHECK(ncclRecv(&data[Index(i)], 1, ncclInt32, 0, comm, nullptr) == ncclSuccess);
      }
    }
    RANK_CHECK(ncclGroupEnd() == ncclSuccess);
    for (int i = 0; i < kMessages; ++i) RANK_CHECK(data[Index(i)] == i);
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

TEST_CASE("communicators of one group may come in another order on each rank") {
  const ncclUniqueId first_id = MakeId(), second_id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t first = Join(2, first_id, rank);
    const ncclComm_t second = Join(2, second_id, rank);
    const Buffer<int> a(1), b(1);
    for (int round = 0; round < 20; ++round) {
      a[0] = rank;
      b[0] = 10 * rank;
      RANK_CHECK(ncclGroupStart() == ncclSuccess);
      for (int i = 0; i < 2; ++i) {
        const bool is_first = (i + rank) % 2 == 0;
        int* data = is_first ? a.get() : b.get();
        RANK_CHECK(ncclAllReduce(data, data, 1, ncclInt32, ncclSum, is_first ? first : second, nullptr) == ncclSuccess);
      }
      RANK_CHECK(ncclGroupEnd() == ncclSuccess);
      RANK_CHECK(a[0] == 1 && b[0] == 10);
    }
    RANK_CHECK(ncclCommDestroy(second) == ncclSuccess);
    return ncclCommDestroy(first) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

TEST_CASE("a gather built of a group of broadcasts, beside sends and receives") {
  constexpr int kRanks = 3;
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(kRanks, id, rank);
    const Buffer<long> all(kRanks), ring(2);
    all[Index(rank)] = 7 + rank;
    ring[0] = rank;
    RANK_CHECK(ncclGroupStart() == ncclSuccess);
    RANK_CHECK(ncclRecv(&ring[1], 1, ncclInt64, (rank + kRanks - 1) % kRanks, comm, nullptr) == ncclSuccess);
    for (int root = 0; root < kRanks; ++root) {
      RANK_CHECK(ncclBcast(&all[Index(root)], 1, ncclInt64, root, comm, nullptr) == ncclSuccess);
    }
    RANK_CHECK(ncclGroupStart() == ncclSuccess);  // nested
    RANK_CHECK(ncclSend(&ring[0], 1, ncclInt64, (rank + 1) % kRanks, comm, nullptr) == ncclSuccess);
    RANK_CHECK(ncclGroupEnd() == ncclSuccess);
    RANK_CHECK(all[Index((rank + 1) % kRanks)] == 0);  // nothing has run yet
    RANK_CHECK(ncclGroupEnd() == ncclSuccess);
    for (int root = 0; root < kRanks; ++root) RANK_CHECK(all[Index(root)] == 7 + root);
    RANK_CHECK(ring[1] == (rank + kRanks - 1) % kRanks);
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(kRanks, body) == AllZero(kRanks));
}

TEST_CASE("one process drives several devices") {
  const auto body = [](int) {
    constexpr int kDevices = 4;
    const int devices[kDevices] = {3, 1, 0, 2};
    ncclComm_t comms[kDevices] = {};
    RANK_CHECK(ncclCommInitAll(comms, kDevices, devices) == ncclSuccess);
    for (int rank = 0; rank < kDevices; ++rank) {
      int device = -1;
      RANK_CHECK(ncclCommCuDevice(comms[rank], &device) == ncclSuccess && device == devices[rank]);
    }
    const Buffer<float> data(kDevices);
    RANK_CHECK(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < kDevices; ++rank) {
      data[Index(rank)] = static_cast<float>(rank + 1);
      float* mine = &data[Index(rank)];
      RANK_CHECK(ncclAllReduce(mine, mine, 1, ncclFloat32, ncclSum, comms[rank], nullptr) == ncclSuccess);
    }
    RANK_CHECK(ncclGroupEnd() == ncclSuccess);
    for (int rank = 0; rank < kDevices; ++rank) RANK_CHECK(data[Index(rank)] == 10.0f);
    for (const ncclComm_t comm : comms) RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
    return 0;
  };
  CHECK(RunRanks(1, body) == AllZero(1));
}

TEST_CASE("one thread makes several communicators in a group") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int) {
    ncclComm_t comms[2] = {};
    RANK_CHECK(ncclGroupStart() == ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) RANK_CHECK(ncclCommInitRank(&comms[rank], 2, id, rank) == ncclSuccess);
    RANK_CHECK(ncclGroupEnd() == ncclSuccess);
    for (const ncclComm_t comm : comms) RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
    return 0;
  };
  CHECK(RunRanks(1, body) == AllZero(1));
}

TEST_CASE("a wrong call fails its group, which then does nothing") {
  const auto body = [](int) {
    ncclComm_t comm = nullptr;
    RANK_CHECK(ncclCommInitAll(&comm, 1, nullptr) == ncclSuccess);
    const Buffer<float> data(2);
    data[0] = 5;
    RANK_CHECK(ncclGroupStart() == ncclSuccess);
    RANK_CHECK(ncclAllReduce(&data[0], &data[1], 1, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess);
    RANK_CHECK(ncclBroadcast(&data[0], &data[1], 1, ncclFloat32, 1, comm, nullptr) == ncclInvalidArgument);
    RANK_CHECK(ncclGroupEnd() == ncclInvalidArgument);
    RANK_CHECK(data[1] == 0);
    RANK_CHECK(ncclGroupEnd() == ncclInvalidUsage);
    RANK_CHECK(ncclAllReduce(&data[0], &data[1], 1, ncclFloat32, ncclSum, comm, nullptr) == ncclSuccess);
    RANK_CHECK(data[1] == 5);
    RANK_CHECK(ncclAllReduce(&data[0], &data[1], 1, ncclFloat32, ncclSum, nullptr, nullptr) == ncclInvalidArgument);
    RANK_CHECK(ncclAllReduce(nullptr, &data[1], 1, ncclFloat32, ncclSum, comm, nullptr) == ncclInvalidArgument);
    RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
    RANK_CHECK(ncclAllReduce(&data[0], &data[1], 1, ncclFloat32, ncclSum, comm, nullptr) == ncclInvalidArgument);
    return 0;
  };
  CHECK(RunRanks(1, body) == AllZero(1));
}

}  // namespace
}  // namespace simgpu::nccl
