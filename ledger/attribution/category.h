// What a live block is, and how that is known.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace ledger::attribution {

// The account of a live block. A block has exactly one at an instant, so that they add up to what is allocated.
enum class Category : std::uint8_t {
  kParameter,
  kMasterParameter,  // a copy in higher precision that the optimizer updates
  kGradient,         // of a parameter
  kOptimizerState,
  kSavedActivation,       // kept by the graph of the forward pass for backward
  kRecomputedActivation,  // the same, of a forward that ran again inside backward
  kActivationGradient,    // made by a backward node for the nodes after it
  kCommBuffer,            // of collectives; a gathered parameter is one: sharding adds it
  kWorkspace,             // scratch memory given to a library
  kTemporary,
  kInput,   // a batch of data
  kBuffer,  // of a module, and other state that the program keeps
  kUnknown,
  kCount,
};
inline constexpr std::size_t kCategoryCount = static_cast<std::size_t>(Category::kCount);
constexpr std::size_t Index(Category category) { return static_cast<std::size_t>(category); }

// "saved_activation".
absl::string_view CategoryName(Category category);

// Parameters, their gradients, and what the optimizer keeps: what the number of parameters alone decides.
bool IsModelState(Category category);

// Weakest first.
enum class Evidence : std::uint8_t {
  kNone,
  kLifetime,  // when it came and went
  kScope,     // the op or range in which it was allocated
  kCall,      // its address was passed to a collective, or to a library as workspace
  kGraph,     // an autograd node saved it
  kNamed,     // the agent or the program said so
  kCount,
};
inline constexpr std::size_t kEvidenceCount = static_cast<std::size_t>(Evidence::kCount);
constexpr std::size_t Index(Evidence evidence) { return static_cast<std::size_t>(evidence); }

absl::string_view EvidenceName(Evidence evidence);

// What a block is within its category, where that can be told.
enum class Role : std::uint8_t {
  kNone,
  kGatheredParameter,
  kUnsharded,  // of a gradient: that of the whole parameter, before it is reduced and scattered
  kAllGatherOutput,
  kAllGatherInput,
  kReduceScatterInput,
  kReduceScatterOutput,
  kAllReduceBuffer,
  kBroadcastBuffer,
  kAllToAllBuffer,
  kPointToPointBuffer,
  kOtherCollectiveBuffer,
  kHeldByProgram,       // outlives the phase that it was made in, and nothing of the graph holds it
  kCheckpointBoundary,  // kept by activation checkpointing, in place of what it drops
  kStateOfProgram,      // made outside of the steps, or kept from one step to the next
  kCount,
};

// "all-gather output"; "" for kNone.
absl::string_view RoleName(Role role);

}  // namespace ledger::attribution
