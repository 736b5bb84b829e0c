#include "interpose/torch/profiler_ranges.h"

#include <atomic>
#include <cstdint>

#include "interpose/core/definitions.h"
#include "interpose/core/options.h"
#include "interpose/core/recorder.h"
#include "interpose/torch/adapter_host.h"
#include "interpose/torch/scope_frames.h"

namespace ledger {
namespace {

constexpr std::string_view kOptimizer = "Optimizer.";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";

constinit std::atomic<std::uint32_t> g_steps{0};

}  // namespace

FrameStack* EnterRange(const void* identity, std::string_view name) {
  const bool optimizer = name.starts_with(kOptimizer);
  const auto flags = static_cast<std::uint8_t>(record::kScopeUser | (optimizer ? record::kScopeOptimizer : 0));
  return PushFrame(FrameInfo{identity, record::Layer::kOp, flags}, InternAlways(name));
}

void LeaveRange(FrameStack* stack, const void* identity, std::string_view name) {
  EndFrame(stack, identity);
  if (!name.starts_with(kOptimizerStep)) return;
  const Adapter* const adapter = AttachedAdapter();
  if (g_steps.fetch_add(1, std::memory_order_relaxed) + 1 == CurrentOptions().steps_with_ops && adapter != nullptr) {
    adapter->stop_observing(Observed::kOperators);
  }
}

void TakeRanges() {
  if (const Adapter* const adapter = AttachedAdapter(); adapter != nullptr) {
    adapter->stop_observing(Observed::kRanges);
  }
}

}  // namespace ledger
