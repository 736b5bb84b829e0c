// Every collective, data type and reduction, between processes, against sums done here.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "tools/simgpu/nccl/data_types.h"
#include "tools/simgpu/nccl/test_ranks.h"

namespace simgpu::nccl {
namespace {

constexpr std::size_t kCount = 37;  // elements; odd, so that nothing is aligned by luck

constexpr ncclDataType_t kTypes[] = {ncclInt8,    ncclUint8,    ncclInt32,      ncclUint32,
                                     ncclInt64,   ncclUint64,   ncclFloat16,    ncclFloat32,
                                     ncclFloat64, ncclBfloat16, ncclFloat8e4m3, ncclFloat8e5m2};
constexpr ncclRedOp_t kReductions[] = {ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

// Small whole numbers, which every type holds exactly; so do their sums and products over the ranks used here.
int Input(int rank, std::size_t index) { return 1 + (rank * 3 + static_cast<int>(index)) % 2; }

void Set(void* array, std::size_t index, ncclDataType_t type, double value) {
  const auto put = [&](auto typed) {
    std::memcpy(static_cast<char*>(array) + index * sizeof typed, &typed, sizeof typed);
  };
  switch (type) {
    case ncclInt8:
      return put(static_cast<std::int8_t>(value));
    case ncclUint8:
      return put(static_cast<std::uint8_t>(value));
    case ncclInt32:
      return put(static_cast<std::int32_t>(value));
    case ncclUint32:
      return put(static_cast<std::uint32_t>(value));
    case ncclInt64:
      return put(static_cast<std::int64_t>(value));
    case ncclUint64:
      return put(static_cast<std::uint64_t>(value));
    case ncclFloat16:
      return put(__half(value));
    case ncclFloat32:
      return put(static_cast<float>(value));
    case ncclFloat64:
      return put(value);
    case ncclBfloat16:
      return put(__nv_bfloat16(value));
    case ncclFloat8e4m3:
      return put(__nv_fp8_e4m3(value));
    case ncclFloat8e5m2:
      return put(__nv_fp8_e5m2(value));
    case ncclNumTypes:
      break;
  }
  std::abort();
}

double Get(const void* array, std::size_t index, ncclDataType_t type) {
  const auto take = [&](auto typed) {
    std::memcpy(&typed, static_cast<const char*>(array) + index * sizeof typed, sizeof typed);
    return typed;
  };
  switch (type) {
    case ncclInt8:
      return take(std::int8_t());
    case ncclUint8:
      return take(std::uint8_t());
    case ncclInt32:
      return take(std::int32_t());
    case ncclUint32:
      return take(std::uint32_t());
    case ncclInt64:
      return static_cast<double>(take(std::int64_t()));
    case ncclUint64:
      return static_cast<double>(take(std::uint64_t()));
    case ncclFloat16:
      return static_cast<double>(static_cast<float>(take(__half())));
    case ncclFloat32:
      return static_cast<double>(take(float()));
    case ncclFloat64:
      return take(double());
    case ncclBfloat16:
      return static_cast<double>(static_cast<float>(take(__nv_bfloat16())));
    case ncclFloat8e4m3:
      return static_cast<double>(static_cast<float>(take(__nv_fp8_e4m3())));
    case ncclFloat8e5m2:
      return static_cast<double>(static_cast<float>(take(__nv_fp8_e5m2())));
    case ncclNumTypes:
      break;
  }
  std::abort();
}

bool IsInteger(ncclDataType_t type) { return type <= ncclUint64; }

// What a reduction of the ranks' inputs at `index` must give, rounded to the type.
double Expected(int ranks, std::size_t index, ncclRedOp_t reduction, ncclDataType_t type) {
  double value = Input(0, index);
  for (int rank = 1; rank < ranks; ++rank) {
    const double next = Input(rank, index);
    switch (reduction) {
      case ncclProd:
        value *= next;
        break;
      case ncclMax:
        value = std::max(value, next);
        break;
      case ncclMin:
        value = std::min(value, next);
        break;
      default:
        value += next;
        break;
    }
  }
  if (reduction == ncclAvg) value /= ranks;
  if (IsInteger(type)) value = std::trunc(value);
  double rounded = 0;
  char bytes[8];
  Set(bytes, 0, type, value);
  rounded = Get(bytes, 0, type);
  return rounded;
}

class RankBuffers {
 public:
  RankBuffers(int ranks, int rank, ncclDataType_t type)
      : send(static_cast<std::size_t>(ranks) * kCount * 8), receive(static_cast<std::size_t>(ranks) * kCount * 8) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(ranks) * kCount; ++i) {
      Set(send.get(), i, type, Input(rank, i));
      Set(receive.get(), i, type, 3);
    }
  }
  Buffer<char> send;
  Buffer<char> receive;
};

void CheckReductions(ncclComm_t comm, int ranks, int rank, ncclDataType_t type) {
  for (const ncclRedOp_t reduction : kReductions) {
    const RankBuffers all(ranks, rank, type);
    RANK_CHECK(ncclAllReduce(all.send.get(), all.receive.get(), kCount, type, reduction, comm, nullptr) == ncclSuccess);
    for (std::size_t i = 0; i < kCount; ++i) {
      RANK_CHECK(Get(all.receive.get(), i, type) == Expected(ranks, i, reduction, type));
    }

    const RankBuffers scatter(ranks, rank, type);
    RANK_CHECK(ncclReduceScatter(scatter.send.get(), scatter.receive.get(), kCount, type, reduction, comm, nullptr) ==
               ncclSuccess);
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t index = static_cast<std::size_t>(rank) * kCount + i;
      RANK_CHECK(Get(scatter.receive.get(), i, type) == Expected(ranks, index, reduction, type));
    }

    const int root = ranks - 1;
    const RankBuffers one(ranks, rank, type);
    RANK_CHECK(ncclReduce(one.send.get(), one.receive.get(), kCount, type, reduction, root, comm, nullptr) ==
               ncclSuccess);
    for (std::size_t i = 0; i < kCount; ++i) {
      RANK_CHECK(Get(one.receive.get(), i, type) == (rank == root ? Expected(ranks, i, reduction, type) : 3.0));
    }
  }
}

void CheckScaledSum(ncclComm_t comm, int ranks, int rank, ncclDataType_t type) {
  const Buffer<char> scalar(8);
  Set(scalar.get(), 0, type, 2);
  for (const ncclScalarResidence_t residence : {ncclScalarDevice, ncclScalarHostImmediate}) {
    ncclRedOp_t twice;
    RANK_CHECK(ncclRedOpCreatePreMulSum(&twice, scalar.get(), type, residence, comm) == ncclSuccess);
    const RankBuffers buffers(ranks, rank, type);
    RANK_CHECK(ncclAllReduce(buffers.send.get(), buffers.receive.get(), 1, type, twice, comm, nullptr) == ncclSuccess);
    RANK_CHECK(Get(buffers.receive.get(), 0, type) == 2 * Expected(ranks, 0, ncclSum, type));
    RANK_CHECK(ncclRedOpDestroy(twice, comm) == ncclSuccess);
    RANK_CHECK(ncclAllReduce(buffers.send.get(), buffers.receive.get(), 1, type, twice, comm, nullptr) ==
               ncclInvalidArgument);
  }
}

void CheckMoves(ncclComm_t comm, int ranks, int rank, ncclDataType_t type) {
  const auto block = [](int index) { return static_cast<std::size_t>(index) * kCount; };
  const int root = ranks / 2;
  {
    const RankBuffers b(ranks, rank, type);
    RANK_CHECK(ncclAllGather(b.send.get(), b.receive.get(), kCount, type, comm, nullptr) == ncclSuccess);
    for (int from = 0; from < ranks; ++from) {
      for (std::size_t i = 0; i < kCount; ++i) {
        RANK_CHECK(Get(b.receive.get(), block(from) + i, type) == Input(from, i));
      }
    }
  }
  {
    const RankBuffers b(ranks, rank, type);
    RANK_CHECK(ncclAlltoAll(b.send.get(), b.receive.get(), kCount, type, comm, nullptr) == ncclSuccess);
    for (int from = 0; from < ranks; ++from) {
      for (std::size_t i = 0; i < kCount; ++i) {
        RANK_CHECK(Get(b.receive.get(), block(from) + i, type) == Input(from, block(rank) + i));
      }
    }
  }
  {
    const RankBuffers b(ranks, rank, type);
    RANK_CHECK(ncclBroadcast(b.send.get(), b.receive.get(), kCount, type, root, comm, nullptr) == ncclSuccess);
    RANK_CHECK(ncclBcast(b.send.get(), kCount, type, root, comm, nullptr) == ncclSuccess);
    for (std::size_t i = 0; i < kCount; ++i) {
      RANK_CHECK(Get(b.receive.get(), i, type) == Input(root, i));
      RANK_CHECK(Get(b.send.get(), i, type) == Input(root, i));
    }
  }
  {
    const RankBuffers b(ranks, rank, type);
    RANK_CHECK(ncclGather(b.send.get(), b.receive.get(), kCount, type, root, comm, nullptr) == ncclSuccess);
    for (int from = 0; from < ranks; ++from) {
      for (std::size_t i = 0; i < kCount; ++i) {
        RANK_CHECK(Get(b.receive.get(), block(from) + i, type) == (rank == root ? Input(from, i) : 3));
      }
    }
  }
  {
    const RankBuffers b(ranks, rank, type);
    RANK_CHECK(ncclScatter(b.send.get(), b.receive.get(), kCount, type, root, comm, nullptr) == ncclSuccess);
    for (std::size_t i = 0; i < kCount; ++i) {
      RANK_CHECK(Get(b.receive.get(), i, type) == Input(root, block(rank) + i));
    }
  }
}

int CheckAll(int ranks, const ncclUniqueId& id, int rank) {
  const ncclComm_t comm = Join(ranks, id, rank);
  int count = 0;
  int mine = -1;
  RANK_CHECK(ncclCommCount(comm, &count) == ncclSuccess && count == ranks);
  RANK_CHECK(ncclCommUserRank(comm, &mine) == ncclSuccess && mine == rank);
  for (const ncclDataType_t type : kTypes) {
    CheckReductions(comm, ranks, rank, type);
    CheckScaledSum(comm, ranks, rank, type);
    CheckMoves(comm, ranks, rank, type);
  }
  RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
  return 0;
}

TEST_CASE("collectives give every rank what a single process would compute") {
  const int ranks = GENERATE(1, 2, 3, 5);
  const ncclUniqueId id = MakeId();
  CHECK(RunRanks(ranks, [&](int rank) { return CheckAll(ranks, id, rank); }) == AllZero(ranks));
}

TEST_CASE("sixty-four ranks sum and gather") {
  constexpr int kRanks = 64;
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(kRanks, id, rank);
    const Buffer<int> sum(1), all(kRanks);
    for (int round = 0; round < 10; ++round) {
      sum[0] = rank + round;
      RANK_CHECK(ncclAllReduce(sum.get(), sum.get(), 1, ncclInt32, ncclSum, comm, nullptr) == ncclSuccess);
      RANK_CHECK(sum[0] == kRanks * (kRanks - 1) / 2 + kRanks * round);
      all[static_cast<std::size_t>(rank)] = rank;
      RANK_CHECK(ncclAllGather(&all[static_cast<std::size_t>(rank)], all.get(), 1, ncclInt32, comm, nullptr) ==
                 ncclSuccess);
      for (int i = 0; i < kRanks; ++i) RANK_CHECK(all[static_cast<std::size_t>(i)] == i);
    }
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(kRanks, body) == AllZero(kRanks));
}

TEST_CASE("large messages neither wait nor move data") {
  const ncclUniqueId id = MakeId();
  const auto body = [&](int rank) {
    const ncclComm_t comm = Join(2, id, rank);
    constexpr std::size_t kElements = 64 << 20;
    const Buffer<float> large(kElements);
    // Only one of the two makes the call: were it to wait, it would wait in vain.
    if (rank == 0) {
      RANK_CHECK(ncclAllReduce(large.get(), large.get(), kElements, ncclFloat32, ncclSum, comm, nullptr) ==
                 ncclSuccess);
    }
    return ncclCommDestroy(comm) == ncclSuccess ? 0 : 1;
  };
  CHECK(RunRanks(2, body) == AllZero(2));
}

TEST_CASE("averages of integers are rounded towards zero, whatever the number of ranks") {
  const std::int8_t negative = -3, zero = 0;
  std::int8_t result = 0;
  Reduce({&negative, &zero}, &result, 1, ncclInt8, ncclAvg);
  CHECK(int{result} == -1);
  const std::vector<const void*> many(256, &zero);  // 256 isn't an int8
  Reduce(many, &result, 1, ncclInt8, ncclAvg);
  CHECK(int{result} == 0);
}

}  // namespace
}  // namespace simgpu::nccl
