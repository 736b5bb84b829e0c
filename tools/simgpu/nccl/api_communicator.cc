// The API of communicators: making, splitting, ending, asking.
#include <cstring>
#include <utility>
#include <vector>

#include "tools/simgpu/nccl/annotation.h"
#include "tools/simgpu/nccl/api.h"
#include "tools/simgpu/nccl/communicator.h"
#include "tools/simgpu/nccl/driver.h"
#include "tools/simgpu/nccl/error.h"
#include "tools/simgpu/nccl/formation.h"
#include "tools/simgpu/nccl/group.h"

namespace simgpu::nccl {
namespace {

constexpr int kVersion = SIMGPU_NCCL_VERSION;  // from the build, such as 23007 for 2.30.7

InitRankPayload PayloadOf(const Communicator& communicator) {
  return {communicator.hash, communicator.ranks, communicator.rank, communicator.device};
}

// Makes a communicator, at once or as part of the group, and tells the range about it.
ncclResult_t InitRank(const char* function, Range& range, Schema schema, ncclComm_t* comm, int ranks,
                      const ncclUniqueId& id, int rank, const ncclConfig_t* config) {
  CommunicatorOptions options;
  Formation formation;
  ncclResult_t result = ReadOptions(function, config, &options);
  if (result == ncclSuccess) result = PrepareJoin(function, ranks, rank, id, options, comm, &formation);
  if (result != ncclSuccess) return Reject(result);
  result = Submit(std::move(formation));
  if (const auto made = Find(*comm); made != nullptr) range.SetEndPayload(schema, PayloadOf(*made));
  return result;
}

// Takes a handle back from the program. The last reference, which may be a call that is still unwinding in another
// thread, frees the memory; waiting for that thread keeps the accounts simple: after the return, it is free.
void Release(ncclComm_t handle, std::shared_ptr<Communicator> communicator) {
  Unregister(handle);
  std::lock_guard wait_for_running_calls(communicator->order_mutex);
  communicator->core.reset();
  communicator->connections.reset();
}

}  // namespace
}  // namespace simgpu::nccl

using namespace simgpu::nccl;  // NOLINT: this file is the API, one definition per function of nccl.h

NCCL_API(ncclResult_t, ncclGetVersion, int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = kVersion;
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclGetUniqueId, ncclUniqueId* uniqueId) {
  if (uniqueId == nullptr) return Fail(ncclInvalidArgument, "ncclGetUniqueId : uniqueId argument is NULL");
  Invitation invitation;
  if (const ncclResult_t result = MakeInvitation(&invitation); result != ncclSuccess) return result;
  std::memset(uniqueId, 0, sizeof *uniqueId);
  std::memcpy(uniqueId, &invitation, sizeof invitation);
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommInitRank, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank) {
  static constinit RangeName name("ncclCommInitRank");
  Range range(name);
  return InitRank(name.function(), range, Schema::kCommInitRank, comm, nranks, commId, rank, nullptr);
}

NCCL_API(ncclResult_t, ncclCommInitRankConfig, ncclComm_t* comm, int nranks, ncclUniqueId commId, int rank,
         ncclConfig_t* config) {
  static constinit RangeName name("ncclCommInitRankConfig");
  Range range(name);
  return InitRank(name.function(), range, Schema::kCommInitRankConfig, comm, nranks, commId, rank, config);
}

NCCL_API(ncclResult_t, ncclCommInitRankScalable, ncclComm_t* newcomm, int nranks, int myrank, int nId,
         ncclUniqueId* commIds, ncclConfig_t* config) {
  static constinit RangeName name("ncclCommInitRankScalable");
  Range range(name);
  if (commIds == nullptr || nId < 1 || nId > nranks) {
    return Reject(Fail(ncclInvalidArgument, "ncclCommInitRankScalable : %d unique ids for %d ranks", nId, nranks));
  }
  // More than one id only spreads the load of bootstrapping; the first names the communicator on all ranks.
  return InitRank(name.function(), range, Schema::kCommInitRankScalable, newcomm, nranks, commIds[0], myrank, config);
}

NCCL_API(ncclResult_t, ncclCommInitAll, ncclComm_t* comm, int ndev, const int* devlist) {
  static constinit RangeName name("ncclCommInitAll");
  Range range(name);
  const Driver* driver = GetDriver();
  if (driver == nullptr) return ncclSystemError;
  if (comm == nullptr || ndev < 1) return Fail(ncclInvalidArgument, "ncclCommInitAll : %d devices", ndev);
  ncclUniqueId id;
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) return result;
  StartGroup();
  for (int rank = 0; rank < ndev; ++rank) {
    const int ordinal = devlist != nullptr ? devlist[rank] : rank;
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUresult found = driver->cuDeviceGet_(&device, ordinal);
    if (found == CUDA_SUCCESS) found = driver->cuDevicePrimaryCtxRetain_(&context, device);
    if (found != CUDA_SUCCESS) {
      Reject(Fail(ncclUnhandledCudaError, "ncclCommInitAll : no device %d", ordinal));
      break;
    }
    ContextScope scope(context);
    Formation formation;
    const ncclResult_t result =
        PrepareJoin(name.function(), ndev, rank, id, CommunicatorOptions(), &comm[rank], &formation);
    if (result != ncclSuccess) {
      Reject(result);
      break;
    }
    Submit(std::move(formation));
  }
  const ncclResult_t result = EndGroup();
  if (result == ncclSuccess) {
    if (const auto first = Find(comm[0]); first != nullptr) {
      range.SetEndPayload(Schema::kCommInitAll, InitAllPayload{first->hash, ndev});
    }
  }
  return result;
}

NCCL_API(ncclResult_t, ncclCommSplit, ncclComm_t comm, int color, int key, ncclComm_t* newcomm, ncclConfig_t* config) {
  static constinit RangeName name("ncclCommSplit");
  Range range(name);
  auto parent = FindArgument(name.function(), comm);
  if (parent == nullptr) return Reject(ncclInvalidArgument);
  parent->AwaitMade();
  CommunicatorOptions options = parent->options;
  Formation formation;
  ncclResult_t result = ReadOptions(name.function(), config, &options);
  if (result == ncclSuccess) result = PrepareSplit(parent, color, key, options, newcomm, &formation);
  if (result != ncclSuccess) return Reject(result);
  result = Submit(std::move(formation));
  if (const auto child = result == ncclSuccess ? Find(*newcomm) : nullptr; child != nullptr) {
    range.SetEndPayload(Schema::kCommSplit,
                        SplitPayload{child->hash, parent->hash, child->ranks, child->rank, child->device, color, key});
  }
  return result;
}

NCCL_API(ncclResult_t, ncclCommShrink, ncclComm_t comm, int* excludeRanksList, int excludeRanksCount,
         ncclComm_t* newcomm, ncclConfig_t* config, int shrinkFlags) {
  static constinit RangeName name("ncclCommShrink");
  Range range(name);
  auto parent = FindArgument(name.function(), comm);
  if (parent == nullptr) return Reject(ncclInvalidArgument);
  if (excludeRanksList == nullptr || excludeRanksCount < 1) {
    return Reject(Fail(ncclInvalidArgument, "ncclCommShrink : %d ranks to exclude", excludeRanksCount));
  }
  parent->AwaitMade();
  // What is running on the parent is waiting for the ranks to be excluded, as a rule.
  if ((shrinkFlags & NCCL_SHRINK_ABORT) != 0) parent->Revoke();
  CommunicatorOptions options = parent->options;
  Formation formation;
  ncclResult_t result = ReadOptions(name.function(), config, &options);
  if (result == ncclSuccess) {
    result =
        PrepareShrink(parent, {excludeRanksList, excludeRanksList + excludeRanksCount}, options, newcomm, &formation);
  }
  if (result != ncclSuccess) return Reject(result);
  result = Submit(std::move(formation));
  if (const auto child = result == ncclSuccess ? Find(*newcomm) : nullptr; child != nullptr) {
    range.SetEndPayload(Schema::kCommShrink,
                        ShrinkPayload{child->hash, child->ranks, child->rank, child->device, excludeRanksCount});
  }
  return result;
}

NCCL_API(ncclResult_t, ncclCommFinalize, ncclComm_t comm) {
  static constinit RangeName name("ncclCommFinalize");
  Range range(name);
  const auto communicator = FindArgument(name.function(), comm);
  if (communicator == nullptr) return ncclInvalidArgument;
  range.SetEndPayload(Schema::kCommFinalize, FinalizePayload{communicator->hash});
  if (communicator->revoked()) return Fail(ncclInvalidUsage, "ncclCommFinalize : the communicator has been revoked");
  communicator->AwaitMade();
  return communicator->state();  // operations are complete when their calls return: there is nothing to flush
}

NCCL_API(ncclResult_t, ncclCommDestroy, ncclComm_t comm) {
  static constinit RangeName name("ncclCommDestroy");
  Range range(name);
  if (comm == nullptr) return ncclSuccess;
  auto communicator = FindArgument(name.function(), comm);
  if (communicator == nullptr) return ncclInvalidArgument;
  range.SetEndPayload(Schema::kCommDestroy, PayloadOf(*communicator));
  communicator->AwaitMade();
  Release(comm, std::move(communicator));
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommAbort, ncclComm_t comm) {
  static constinit RangeName name("ncclCommAbort");
  Range range(name);
  if (comm == nullptr) return ncclSuccess;
  auto communicator = FindArgument(name.function(), comm);
  if (communicator == nullptr) return ncclInvalidArgument;
  range.SetEndPayload(Schema::kCommAbort, PayloadOf(*communicator));
  communicator->Abort();
  communicator->AwaitMade();
  Release(comm, std::move(communicator));
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommRevoke, ncclComm_t comm, int revokeFlags) {
  static constinit RangeName name("ncclCommRevoke");
  Range range(name);
  const auto communicator = FindArgument(name.function(), comm);
  if (communicator == nullptr) return ncclInvalidArgument;
  if (revokeFlags != NCCL_REVOKE_DEFAULT) {
    return Fail(ncclInvalidArgument, "ncclCommRevoke : flags %d, expected NCCL_REVOKE_DEFAULT", revokeFlags);
  }
  range.SetEndPayload(Schema::kCommRevoke, PayloadOf(*communicator));
  communicator->Revoke();
  return ncclSuccess;
}

NCCL_API(const char*, ncclGetErrorString, ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
    case ncclNumResults:
      break;
  }
  return "unknown result code";
}

NCCL_API(const char*, ncclGetLastError, ncclComm_t) { return LastError(); }

extern "C" void ncclResetDebugInit();
extern "C" void pncclResetDebugInit();
NCCL_API(void, ncclResetDebugInit) {}

NCCL_API(ncclResult_t, ncclCommGetAsyncError, ncclComm_t comm, ncclResult_t* asyncError) {
  // No Fail(): watchdogs ask ten times a second, about communicators that another thread may just be destroying.
  const auto communicator = Find(comm);
  if (communicator == nullptr || asyncError == nullptr) return ncclInvalidArgument;
  *asyncError = communicator->state();
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommCount, const ncclComm_t comm, int* count) {
  static constinit RangeName name("ncclCommCount");
  Range range(name);
  const auto communicator = FindArgument(name.function(), comm);
  if (communicator == nullptr || count == nullptr) return ncclInvalidArgument;
  *count = communicator->ranks;
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommCuDevice, const ncclComm_t comm, int* device) {
  static constinit RangeName name("ncclCommCuDevice");
  Range range(name);
  const auto communicator = FindArgument(name.function(), comm);
  if (communicator == nullptr || device == nullptr) return ncclInvalidArgument;
  *device = communicator->device;
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommUserRank, const ncclComm_t comm, int* rank) {
  static constinit RangeName name("ncclCommUserRank");
  Range range(name);
  const auto communicator = FindArgument(name.function(), comm);
  if (communicator == nullptr || rank == nullptr) return ncclInvalidArgument;
  *rank = communicator->rank;
  return ncclSuccess;
}

NCCL_API(ncclResult_t, ncclCommMemStats, ncclComm_t comm, ncclCommMemStat_t stat, std::uint64_t* value) {
  const auto communicator = FindArgument("ncclCommMemStats", comm);
  if (communicator == nullptr || value == nullptr) return ncclInvalidArgument;
  communicator->AwaitMade();
  const std::uint64_t persistent = communicator->core != nullptr ? communicator->core->device_bytes() : 0;
  switch (stat) {
    case ncclStatGpuMemSuspend:
      *value = communicator->device_bytes() - persistent;
      return ncclSuccess;
    case ncclStatGpuMemSuspended:
      *value = 0;
      return ncclSuccess;
    case ncclStatGpuMemPersist:
      *value = persistent;
      return ncclSuccess;
    case ncclStatGpuMemTotal:
      *value = communicator->device_bytes();
      return ncclSuccess;
  }
  return Fail(ncclInvalidArgument, "ncclCommMemStats : unknown statistic %d", static_cast<int>(stat));
}
