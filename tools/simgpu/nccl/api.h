// How functions of the public API are exported: `ncclX` weak, so that a tool may define it in front and go on to the
// strong `pncclX`, which is the same function. Both without a symbol version, as the genuine library has them.
#ifndef TOOLS_SIMGPU_NCCL_API_H_
#define TOOLS_SIMGPU_NCCL_API_H_

#include <nccl.h>

#include <cstdint>

#define NCCL_API(Return, name, ...)                                                         \
  extern "C" [[gnu::visibility("default"), gnu::alias(#name)]] Return p##name(__VA_ARGS__); \
  extern "C" [[gnu::visibility("default"), gnu::weak]] Return name(__VA_ARGS__)

// Functions that are newer than the header, which torch's releases import.
extern "C" {
typedef enum {
  ncclStatGpuMemSuspend = 0,    // bytes that ncclCommSuspend would give back: connections
  ncclStatGpuMemSuspended = 1,  // 1 while suspended
  ncclStatGpuMemPersist = 2,    // bytes that stay
  ncclStatGpuMemTotal = 3,
} ncclCommMemStat_t;
}

#endif  // TOOLS_SIMGPU_NCCL_API_H_
