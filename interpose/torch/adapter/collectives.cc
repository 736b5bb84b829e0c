// The collective that a thread is inside of, and the process groups.
//
// While a collective runs, c10d describes it on the thread that calls NCCL, also inside of what is coalesced, and for
// sends and receives. Newer backends (2.15) do so only while the profiler has an observer, which is in the steps in
// which ops are observed, and leave out all of the group but its name. So the group itself is asked for the rest: it is
// found by its name, which these backends tell NCCL as well.
//
// The description has elements and types of the tensors, too. NCCL is told the same, call by call.
#include <c10/util/ThreadLocalDebugInfo.h>

#include <string>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

#include "interpose/torch/adapter/adapter.h"

namespace ledger::adapter {
namespace {

const torch::ParamCommsDebugInfo* CurrentCollective() {
  return static_cast<const torch::ParamCommsDebugInfo*>(
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
}

std::uint32_t Text(const std::string& text) { return Host().text(text.data(), text.size()); }

// `ranks` are those of the job; empty for the group of all ranks.
void TakeRanks(const std::vector<std::uint64_t>& ranks, record::ProcessGroupInfo* info) {
  info->first_rank = ranks.empty() ? 0 : static_cast<std::int32_t>(ranks[0]);
  info->rank_stride = ranks.empty() && info->ranks > 1 ? 1 : 0;
  if (ranks.size() < 2) return;
  const std::int64_t stride = static_cast<std::int64_t>(ranks[1]) - static_cast<std::int64_t>(ranks[0]);
  info->rank_stride = stride > 0 ? static_cast<std::int32_t>(stride) : record::kUnevenRanks;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != ranks[1] - ranks[0]) info->rank_stride = record::kUnevenRanks;
  }
}

// Leaves `info` as it is where the backend has no options, as one that only wraps another.
void AskRanks(c10d::ProcessGroup& group, record::ProcessGroupInfo* info) try {
  TakeRanks(group.getBackend(c10::DeviceType::CUDA)->getBackendOptions()->global_ranks_in_group, info);
} catch (...) {
  return;
}

// False: no group is registered by that name.
bool AskGroup(const std::string& name, record::ProcessGroupInfo* info) try {
  const auto group = c10d::resolve_process_group(name);
  info->name = Text(name);
  info->description = Text(group->getGroupDesc());
  info->ranks = static_cast<std::uint32_t>(group->getSize());
  info->rank = static_cast<std::uint32_t>(group->getRank());
  AskRanks(*group, info);
  return true;
} catch (...) {
  return false;
}

}  // namespace

std::uint32_t CollectiveName() try {
  const torch::ParamCommsDebugInfo* const current = CurrentCollective();
  return current == nullptr ? 0 : Text(current->getCollectiveName());
} catch (...) {
  return 0;
}

bool CurrentProcessGroup(record::ProcessGroupInfo* info) try {
  const torch::ParamCommsDebugInfo* const current = CurrentCollective();
  if (current == nullptr) return false;
  const std::string name = current->getProcessGroupName();
  info->name = Text(name);
  info->description = Text(current->getProcessGroupDesc());
  info->ranks = static_cast<std::uint32_t>(current->getWorldSize());
  info->rank = static_cast<std::uint32_t>(current->getRank());
  info->first_rank = current->getGlobalRankStart();
  info->rank_stride = current->getGlobalRankStride();
  AskGroup(name, info);
  return true;
} catch (...) {
  return false;
}

bool ProcessGroupNamed(const char* name, std::size_t bytes, record::ProcessGroupInfo* info) try {
  info->first_rank = info->rank_stride = record::kUnevenRanks;
  return AskGroup(std::string(name, bytes), info);
} catch (...) {
  return false;
}

}  // namespace ledger::adapter
