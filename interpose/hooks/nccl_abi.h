// NCCL's types as they cross its border. Declared here and not taken from nccl.h, because that header is not part of
// the CUDA toolkit, and because one library serves every version of NCCL: these have not changed since 2.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ledger::nccl {

using Communicator = struct ncclComm*;
using Stream = struct CUstream_st*;
using Window = void*;
using Result = int;
using DataType = int;
using ReductionOperator = int;

inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidUsage = 5;
inline constexpr Result kInProgress = 7;  // a non-blocking communicator: accepted, not finished
inline constexpr int kNoColor = -1;       // NCCL_SPLIT_NOCOLOR: this rank takes no part in the split

struct UniqueId {
  char bytes[128];
};

// The beginning of ncclConfig_t, which grows from version to version; `size` says up to where it is there.
struct Config {
  std::size_t size;
  std::uint32_t magic;
  std::uint32_t version;
  int blocking;
  int cga_cluster_size;
  int min_ctas;
  int max_ctas;
  const char* net_name;
  int split_share;
  int traffic_class;
  const char* communicator_name;  // since 2.27
};
inline constexpr std::uint32_t kConfigMagic = 0xcafebeef;

}  // namespace ledger::nccl
