// Ranks that end, hang or disagree: the others are told, in bounded time, and nothing is left behind.
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tools/simgpu/nccl/test_ranks.h"

namespace simgpu::nccl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

bool LastErrorHas(const char* text) { return std::strstr(ncclGetLastError(nullptr), text) != nullptr; }

ncclResult_t Reduce(ncclComm_t comm, int* data) {
  return ncclAllReduce(data, data, 1, ncclInt32, ncclSum, comm, nullptr);
}

TEST_CASE("a rank that is killed fails the operations that wait for it") {
  constexpr int kRanks = 4;
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(kRanks, id, rank);
    const Buffer<int> data(1);
    RANK_CHECK(Reduce(comm, data.get()) == ncclSuccess);
    if (rank == 3) raise(SIGKILL);
    const auto start = Clock::now();
    RANK_CHECK(Reduce(comm, data.get()) == ncclRemoteError);
    RANK_CHECK(Clock::now() - start < seconds(10));
    RANK_CHECK(LastErrorHas("rank ") && LastErrorHas("waited in ncclAllReduce #1"));
    ncclResult_t state = ncclSuccess;
    RANK_CHECK(ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclRemoteError);
    RANK_CHECK(Reduce(comm, data.get()) == ncclRemoteError);  // and stays so
    return ncclCommAbort(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(kRanks, body) == std::vector<int>{0, 0, 0, kKilled + SIGKILL});
}

TEST_CASE("data of a rank that has ended is still received") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    const Buffer<int> data(1);
    if (rank == 0) {
      data[0] = 42;
      RANK_CHECK(ncclSend(data.get(), 1, ncclInt32, 1, comm, nullptr) == ncclSuccess);
      raise(SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    RANK_CHECK(ncclRecv(data.get(), 1, ncclInt32, 0, comm, nullptr) == ncclSuccess);
    RANK_CHECK(data[0] == 42);
    RANK_CHECK(ncclRecv(data.get(), 1, ncclInt32, 0, comm, nullptr) == ncclRemoteError);
    RANK_CHECK(LastErrorHas("is gone"));
    return 0;
  };
  CHECK(RunRanks(2, body) == std::vector<int>{kKilled + SIGKILL, 0});
}

TEST_CASE("ranks that make different calls are told so") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    const Buffer<int> data(4);
    const ncclResult_t result =
        ncclAllReduce(data.get(), data.get(), rank == 0 ? 1 : 2, ncclInt32, ncclSum, comm, nullptr);
    RANK_CHECK(result == ncclInvalidUsage && LastErrorHas("made another call"));
    return 0;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

TEST_CASE("ncclCommAbort from another thread ends a blocked call") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    const Buffer<int> data(1);
    if (rank == 0) {
      std::thread watchdog([comm] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        RANK_CHECK(ncclCommAbort(comm) == ncclSuccess);
      });
      RANK_CHECK(Reduce(comm, data.get()) == ncclSystemError);
      watchdog.join();
      RANK_CHECK(LastErrorHas("ncclCommAbort"));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      RANK_CHECK(Reduce(comm, data.get()) == ncclSuccess);  // rank 0's part had arrived
      RANK_CHECK(Reduce(comm, data.get()) == ncclRemoteError);
      RANK_CHECK(LastErrorHas("has aborted it"));
    }
    return 0;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

TEST_CASE("a rank that hangs is given up after SIMGPU_TIMEOUT_S") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    setenv("SIMGPU_TIMEOUT_S", "2", 1);
    const ncclComm_t comm = Join(2, id, rank);
    const Buffer<int> data(1);
    if (rank == 1) {
      std::this_thread::sleep_for(seconds(5));
      return 0;
    }
    const auto start = Clock::now();
    RANK_CHECK(Reduce(comm, data.get()) == ncclSystemError);
    RANK_CHECK(Clock::now() - start >= seconds(2) && Clock::now() - start < seconds(5));
    RANK_CHECK(LastErrorHas("gave up after 2 s") && LastErrorHas("for rank 1 (pid "));
    return 0;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

TEST_CASE("joining is bounded, and so is joining through an id whose maker is gone") {
  const ncclUniqueId lonely = MakeId();
  const auto alone = [&](int) {
    setenv("SIMGPU_TIMEOUT_S", "1", 1);
    ncclComm_t comm = nullptr;
    RANK_CHECK(ncclCommInitRank(&comm, 2, lonely, 0) == ncclSystemError);
    RANK_CHECK(comm == nullptr && LastErrorHas("1 (not there)"));
    return 0;
  };
  CHECK(RunRanks(1, alone) == AllZero(1));

  ncclUniqueId orphaned;
  int channel[2];
  REQUIRE(pipe(channel) == 0);
  const auto maker = [&](int) {
    const ncclUniqueId id = MakeId();
    return write(channel[1], &id, sizeof id) == sizeof id ? 0 : 1;
  };
  REQUIRE(RunRanks(1, maker) == AllZero(1));
  REQUIRE(read(channel[0], &orphaned, sizeof orphaned) == sizeof orphaned);
  close(channel[0]);
  close(channel[1]);
  const auto late = [&](int) {
    ncclComm_t comm = nullptr;
    RANK_CHECK(ncclCommInitRank(&comm, 2, orphaned, 0) == ncclSystemError && LastErrorHas("is gone"));
    RANK_CHECK(ncclCommInitRank(&comm, 2, ncclUniqueId(), 0) == ncclInvalidArgument);
    return 0;
  };
  CHECK(RunRanks(1, late) == AllZero(1));
}

TEST_CASE("two processes can't be the same rank, nor disagree about their number") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int process) {
    setenv("SIMGPU_TIMEOUT_S", "2", 1);
    if (process > 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRank(&comm, process == 2 ? 3 : 2, id, 0);
    if (process == 0) RANK_CHECK(result == ncclSystemError);  // nobody is rank 1
    if (process == 1) RANK_CHECK(result == ncclInvalidUsage && LastErrorHas("already taken"));
    if (process == 2) RANK_CHECK(result == ncclInvalidArgument && LastErrorHas("another rank one of 2"));
    return 0;
  };
  CHECK(RunRanks(3, body) == AllZero(3));
}

TEST_CASE("nothing is left in /dev/shm, and no descriptor stays open") {
  const auto body = [](int) {
    const auto count = [](const char* folder) {
      const std::filesystem::directory_iterator entries(folder);
      return std::distance(begin(entries), end(entries));
    };
    { const Buffer<char> context(1); }
    const auto shared = count("/dev/shm"), descriptors = count("/proc/self/fd");
    for (int round = 0; round < 3; ++round) {
      ncclComm_t comms[2] = {};
      RANK_CHECK(ncclCommInitAll(comms, 2, nullptr) == ncclSuccess);
      RANK_CHECK(count("/dev/shm") == shared);
      for (const ncclComm_t comm : comms) RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
    }
    RANK_CHECK(count("/proc/self/fd") == descriptors);
    return 0;
  };
  CHECK(RunRanks(1, body) == AllZero(1));
}

}  // namespace
}  // namespace simgpu::nccl
