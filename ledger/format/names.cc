#include "ledger/format/names.h"

namespace ledger::format {
namespace {

using record::Kind;
using record::Layer;
using record::Loss;
using record::Memory;
using record::Operation;
using record::PhaseKind;

template <typename Enum>
struct Named {
  Enum value;
  absl::string_view name;
};

constexpr Named<Kind> kKinds[] = {
    {Kind::kText, "text"},
    {Kind::kScope, "scope"},
    {Kind::kClock, "clock"},
    {Kind::kDevice, "device"},
    {Kind::kSetting, "setting"},
    {Kind::kCommunicator, "communicator"},
    {Kind::kProcessGroup, "process_group"},
    {Kind::kAlloc, "alloc"},
    {Kind::kFree, "free"},
    {Kind::kAllocFailed, "alloc_failed"},
    {Kind::kHandleCreate, "handle_create"},
    {Kind::kHandleImport, "handle_import"},
    {Kind::kHandleRetain, "handle_retain"},
    {Kind::kHandleRelease, "handle_release"},
    {Kind::kMap, "map"},
    {Kind::kUnmap, "unmap"},
    {Kind::kReserve, "reserve"},
    {Kind::kUnreserve, "unreserve"},
    {Kind::kDeviceReset, "device_reset"},
    {Kind::kDeviceSample, "device_sample"},
    {Kind::kPoolSample, "pool_sample"},
    {Kind::kBlockAlloc, "block_alloc"},
    {Kind::kBlockFree, "block_free"},
    {Kind::kBlockOom, "block_oom"},
    {Kind::kBlockPending, "block_pending"},
    {Kind::kBlockReusable, "block_reusable"},
    {Kind::kBlockSeen, "block_seen"},
    {Kind::kSegmentAlloc, "segment_alloc"},
    {Kind::kSegmentFree, "segment_free"},
    {Kind::kSegmentMap, "segment_map"},
    {Kind::kSegmentUnmap, "segment_unmap"},
    {Kind::kSegmentSeen, "segment_seen"},
    {Kind::kRangePush, "range_push"},
    {Kind::kRangePop, "range_pop"},
    {Kind::kRangeStart, "range_start"},
    {Kind::kRangeEnd, "range_end"},
    {Kind::kMark, "mark"},
    {Kind::kCollective, "collective"},
    {Kind::kCommunicatorDestroy, "communicator_destroy"},
    {Kind::kGroupStart, "group_start"},
    {Kind::kGroupEnd, "group_end"},
    {Kind::kTag, "tag"},
    {Kind::kUntag, "untag"},
    {Kind::kPause, "pause"},
    {Kind::kResume, "resume"},
    {Kind::kValueRead, "value_read"},
    {Kind::kSavedTensor, "saved_tensor"},
    {Kind::kPhase, "phase"},
    {Kind::kName, "name"},
};

constexpr Named<Memory> kMemories[] = {
    {Memory::kLinear, "linear"},
    {Memory::kPitched, "pitched"},
    {Memory::kManaged, "managed"},
    {Memory::kHost, "host"},
    {Memory::kHostRegistered, "host_registered"},
    {Memory::kAsync, "stream_ordered"},
    {Memory::kArray, "array"},
    {Memory::kPhysical, "physical"},
    {Memory::kPhysicalHost, "physical_host"},
    {Memory::kPeer, "peer"},
    {Memory::kAddressSpace, "address_space"},
};

constexpr Named<Layer> kLayers[] = {
    {Layer::kDriver, "driver"},       {Layer::kRuntime, "runtime"}, {Layer::kNccl, "nccl"},
    {Layer::kAllocator, "allocator"}, {Layer::kNvtx, "nvtx"},       {Layer::kApi, "api"},
    {Layer::kAgent, "agent"},         {Layer::kOp, "op"},
};

constexpr Named<Operation> kOperations[] = {
    {Operation::kAllReduce, "all_reduce"},
    {Operation::kReduce, "reduce"},
    {Operation::kBroadcast, "broadcast"},
    {Operation::kAllGather, "all_gather"},
    {Operation::kReduceScatter, "reduce_scatter"},
    {Operation::kAllToAll, "all_to_all"},
    {Operation::kGather, "gather"},
    {Operation::kScatter, "scatter"},
    {Operation::kSend, "send"},
    {Operation::kReceive, "receive"},
};

constexpr Named<PhaseKind> kPhases[] = {
    {PhaseKind::kSetup, "setup"},           {PhaseKind::kForward, "forward"},
    {PhaseKind::kBackward, "backward"},     {PhaseKind::kOptimizer, "optimizer"},
    {PhaseKind::kBetween, "between steps"}, {PhaseKind::kEvaluation, "evaluation"},
};

struct LossText {
  Loss value;
  absl::string_view name;
  absl::string_view meaning;
};
constexpr LossText kLosses[] = {
    {Loss::kDiskFull, "disk_full", "the file could not grow; events after that are missing"},
    {Loss::kFileLimit, "file_limit", "LEDGER_MAX_BYTES was reached; events after that are missing"},
    {Loss::kTextTable, "text_table", "no room for more names; some owners, calls or marks have none"},
    {Loss::kScopeTable, "scope_table", "no room for more scopes; some events carry the enclosing one"},
    {Loss::kRangeDepth, "range_depth", "ranges nested too deeply; some events carry an outer one"},
    {Loss::kUnbalancedPop, "unbalanced_pop", "ranges were popped that had not been pushed"},
    {Loss::kUnresolved, "unresolved", "a real entry point was not found; its calls are missing"},
    {Loss::kTooManyVariants, "too_many_variants",
     "more real functions behind an entry point than wrappers; their calls are missing"},
    {Loss::kInternal, "internal", "a part of the recorder failed and switched itself off"},
};

template <typename Enum, std::size_t kCount>
absl::string_view Find(const Named<Enum> (&table)[kCount], Enum value, absl::string_view otherwise) {
  for (const auto& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return otherwise;
}

}  // namespace

absl::string_view KindName(Kind kind) { return Find(kKinds, kind, ""); }

std::optional<Kind> KindFromName(absl::string_view name) {
  for (const auto& entry : kKinds) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

absl::string_view MemoryName(Memory memory) { return Find(kMemories, memory, "unknown"); }
absl::string_view LayerName(Layer layer) { return Find(kLayers, layer, "none"); }
absl::string_view OperationName(Operation operation) { return Find(kOperations, operation, "unknown"); }
absl::string_view PhaseName(PhaseKind phase) { return Find(kPhases, phase, "unknown phase"); }

absl::string_view LossName(Loss loss) {
  for (const auto& entry : kLosses) {
    if (entry.value == loss) return entry.name;
  }
  return "unknown_loss";
}

absl::string_view LossMeaning(Loss loss) {
  for (const auto& entry : kLosses) {
    if (entry.value == loss) return entry.meaning;
  }
  return "a reason that this version does not know";
}

}  // namespace ledger::format
