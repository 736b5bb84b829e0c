#include "ledger/replay/record_fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ledger/format/names.h"

namespace ledger::replay {

using record::Kind;

bool IsAllocation(Kind kind) {
  switch (kind) {
    case Kind::kAlloc:
    case Kind::kFree:
    case Kind::kAllocFailed:
    case Kind::kHandleCreate:
    case Kind::kHandleImport:
    case Kind::kHandleRetain:
    case Kind::kHandleRelease:
    case Kind::kReserve:
    case Kind::kUnreserve:
      return true;
    default:
      return false;
  }
}

std::uint32_t ScopeOf(const format::Slot& slot) {
  const Kind kind = slot.kind();
  if (IsAllocation(kind)) return slot.As<record::Allocation>().scope;
  switch (kind) {
    case Kind::kBlockAlloc:
    case Kind::kBlockFree:
      return slot.As<record::Block>().scope;
    case Kind::kMap:
    case Kind::kUnmap:
      return slot.As<record::Mapping>().scope;
    case Kind::kBlockOom:
      return slot.As<record::BlockOom>().scope;
    case Kind::kDeviceReset:
    case Kind::kDeviceSample:
      return slot.As<record::DeviceSample>().scope;
    case Kind::kPoolSample:
      return slot.As<record::PoolSample>().scope;
    case Kind::kRangePush:
    case Kind::kRangePop:
    case Kind::kMark:
      return slot.As<record::Range>().scope;
    case Kind::kCollective:
      return slot.As<record::Collective>().scope;
    case Kind::kTag:
    case Kind::kUntag:
      return slot.As<record::Tag>().scope;
    case Kind::kBlockPending:
    case Kind::kBlockReusable:
    case Kind::kBlockSeen:
      return slot.As<record::BlockDetail>().scope;
    case Kind::kSegmentAlloc:
    case Kind::kSegmentFree:
    case Kind::kSegmentMap:
    case Kind::kSegmentUnmap:
    case Kind::kSegmentSeen:
      return slot.As<record::Segment>().scope;
    case Kind::kSavedTensor:
      return slot.As<record::SavedTensor>().scope;
    case Kind::kPhase:
      return slot.As<record::Phase>().scope;
    case Kind::kValueRead:
      return slot.As<record::ValueRead>().scope;
    default:
      return 0;
  }
}

std::string PhaseAt(const format::LedgerFile& file, std::uint64_t slot) {
  if (slot >= file.slots().size()) return "";
  const std::string path = file.ScopePath(ScopeOf(file.slots()[slot]));
  const auto phases = file.phases();
  const auto after = std::upper_bound(phases.begin(), phases.end(), slot);
  if (after == phases.begin()) return path;
  const auto& phase = file.slots()[*(after - 1)].As<record::Phase>();
  const bool in_step = phase.phase == record::PhaseKind::kForward || phase.phase == record::PhaseKind::kBackward ||
                       phase.phase == record::PhaseKind::kOptimizer;
  const std::string step = in_step ? absl::StrCat("step ", phase.step, " ") : "";
  return absl::StrCat(step, format::PhaseName(phase.phase), path.empty() ? "" : ": ", path);
}

std::uint32_t OwnerOf(const format::Slot& slot) {
  const Kind kind = slot.kind();
  if (IsAllocation(kind)) return slot.As<record::Allocation>().owner;
  if (kind == Kind::kBlockAlloc || kind == Kind::kBlockFree) return slot.As<record::Block>().owner;
  if (kind == Kind::kMap || kind == Kind::kUnmap) return slot.As<record::Mapping>().owner;
  return 0;
}

}  // namespace ledger::replay
