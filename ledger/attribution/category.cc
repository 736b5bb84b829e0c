#include "ledger/attribution/category.h"

namespace ledger::attribution {

absl::string_view CategoryName(Category category) {
  switch (category) {
    case Category::kParameter:
      return "parameter";
    case Category::kMasterParameter:
      return "master_parameter";
    case Category::kGradient:
      return "gradient";
    case Category::kOptimizerState:
      return "optimizer_state";
    case Category::kSavedActivation:
      return "saved_activation";
    case Category::kRecomputedActivation:
      return "recomputed_activation";
    case Category::kActivationGradient:
      return "activation_gradient";
    case Category::kCommBuffer:
      return "comm_buffer";
    case Category::kWorkspace:
      return "workspace";
    case Category::kTemporary:
      return "temporary";
    case Category::kInput:
      return "input";
    case Category::kBuffer:
      return "buffer";
    case Category::kUnknown:
    case Category::kCount:
      break;
  }
  return "unknown";
}

bool IsModelState(Category category) {
  return category == Category::kParameter || category == Category::kMasterParameter ||
         category == Category::kGradient || category == Category::kOptimizerState;
}

absl::string_view EvidenceName(Evidence evidence) {
  switch (evidence) {
    case Evidence::kNamed:
      return "named";
    case Evidence::kGraph:
      return "graph";
    case Evidence::kCall:
      return "call";
    case Evidence::kScope:
      return "scope";
    case Evidence::kLifetime:
      return "lifetime";
    case Evidence::kNone:
    case Evidence::kCount:
      break;
  }
  return "none";
}

absl::string_view RoleName(Role role) {
  switch (role) {
    case Role::kGatheredParameter:
      return "gathered parameter";
    case Role::kUnsharded:
      return "unsharded";
    case Role::kAllGatherOutput:
      return "all-gather output";
    case Role::kAllGatherInput:
      return "all-gather input";
    case Role::kReduceScatterInput:
      return "reduce-scatter input";
    case Role::kReduceScatterOutput:
      return "reduce-scatter output";
    case Role::kAllReduceBuffer:
      return "all-reduce buffer";
    case Role::kBroadcastBuffer:
      return "broadcast buffer";
    case Role::kAllToAllBuffer:
      return "all-to-all buffer";
    case Role::kPointToPointBuffer:
      return "send or receive buffer";
    case Role::kOtherCollectiveBuffer:
      return "collective's buffer";
    case Role::kHeldByProgram:
      return "held by the program";
    case Role::kCheckpointBoundary:
      return "checkpoint boundary";
    case Role::kStateOfProgram:
      return "state of the program";
    case Role::kNone:
    case Role::kCount:
      break;
  }
  return "";
}

}  // namespace ledger::attribution
