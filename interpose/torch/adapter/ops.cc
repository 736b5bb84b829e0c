// The framework's own record of what runs: operators, backward nodes, and ranges of its profiler, as scope frames.
//
// A node of the graph has a number, which is also that of the operator whose backward it is (seqNr). The place of the
// forward is kept by it, so that a backward node, which runs on another thread, can say which module it belongs to.
//
// Operators are observed in the first steps only (LEDGER_OPS): having each of them call us costs a process that is
// bound by its CPU more than anything else here, and steps repeat. Backward nodes and ranges are observed all the time.
//
// An op is recomputation when it would make a node (it has a number) while a backward node runs that was entered
// without grad mode: what backward itself computes makes no nodes then. With create_graph grad mode is on inside
// backward, and this rule says nothing: the agent knows by the modules that run there.
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#if __has_include(<torch/csrc/autograd/node.h>)
#include <torch/csrc/autograd/node.h>
#else
#include <torch/csrc/autograd/function.h>
#endif

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "interpose/torch/adapter/adapter.h"
#include "interpose/torch/adapter/gradients.h"

namespace ledger::adapter {
namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";
constexpr std::string_view kAccumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view kOptimizer = "Optimizer.";
constexpr std::string_view kOptimizerStep = "Optimizer.step#";

// Places of one thread's forward ops by sequence number: a ring that holds the latest ones. Other threads read it.
class PlaceRing {
 public:
  void Set(std::int64_t sequence, std::uint32_t place) {
    entries_[Slot(sequence)].store(Tag(sequence) | place, std::memory_order_relaxed);
  }
  std::uint32_t Get(std::int64_t sequence) const {
    const std::uint64_t entry = entries_[Slot(sequence)].load(std::memory_order_relaxed);
    return (entry & kTagMask) == Tag(sequence) ? static_cast<std::uint32_t>(entry) : 0;
  }

 private:
  static constexpr std::uint64_t kTagMask = ~std::uint64_t{0xFFFFFFFF};
  static constexpr std::size_t kEntries = std::size_t{1} << 16;
  static std::size_t Slot(std::int64_t sequence) { return static_cast<std::size_t>(sequence) % kEntries; }
  static std::uint64_t Tag(std::int64_t sequence) { return static_cast<std::uint64_t>(sequence + 1) << 32; }

  std::array<std::atomic<std::uint64_t>, kEntries> entries_;
};

// By the framework's own small thread numbers. Never freed: backward may come after its forward's thread has ended.
constexpr std::size_t kMaxThreads = 4096;
std::array<std::atomic<PlaceRing*>, kMaxThreads> g_places;

struct BackwardNode {
  const at::RecordFunction* function;
  bool grad_mode;
  bool accumulates;
};

struct ThreadOps {
  std::vector<BackwardNode> nodes;  // innermost last
  PlaceRing* places = nullptr;
};
thread_local ThreadOps t_ops;

at::CallbackHandle g_operators = 0;
std::atomic<std::uint32_t> g_steps{0};

// For a frame that may end on another thread.
struct RangeContext : at::ObserverContext {
  explicit RangeContext(FrameStack* owner) : stack(owner) {}
  FrameStack* stack;
};

PlaceRing* PlacesOfThisThread() {
  if (t_ops.places == nullptr) {
    const std::uint64_t thread = at::RecordFunction::currentThreadId();
    if (thread >= kMaxThreads) return nullptr;
    t_ops.places = g_places[thread].load(std::memory_order_acquire);
    if (t_ops.places == nullptr) {
      // Zero pages until they are used.
      t_ops.places = static_cast<PlaceRing*>(std::calloc(1, sizeof(PlaceRing)));
      g_places[thread].store(t_ops.places, std::memory_order_release);
    }
  }
  return t_ops.places;
}

std::uint32_t PlaceOfForward(std::uint64_t thread, std::int64_t sequence) {
  if (sequence < 0 || thread >= kMaxThreads) return 0;
  const PlaceRing* const places = g_places[thread].load(std::memory_order_acquire);
  return places == nullptr ? 0 : places->Get(sequence);
}

void EnterOperator(const at::RecordFunction& function) {
  std::string_view name = function.name();
  std::uint8_t flags = 0;
  FramePart part = FramePart::kWhole;
  if (name.starts_with(kEvaluate)) {
    name.remove_prefix(kEvaluate.size());
    flags = record::kScopeBackward;
    part = FramePart::kEngine;
  } else if (function.seqNr() >= 0 && !t_ops.nodes.empty() && !t_ops.nodes.back().grad_mode) {
    flags = record::kScopeRecompute;
  }
  Host().push_op(&function, flags, part, 0, name.data(), name.size());
}

void EnterBackwardNode(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  t_ops.nodes.push_back({&function, c10::GradMode::is_enabled(), name == kAccumulate});
  const std::uint32_t origin = PlaceOfForward(function.forwardThreadId(), function.seqNr());
  // The engine's own frame around the node has the same name, and doesn't know where the node comes from.
  Host().push_op(&function, record::kScopeBackward, FramePart::kNode, origin, name.data(), name.size());
}

std::unique_ptr<at::ObserverContext> EnterRange(const at::RecordFunction& function) {
  if (function.isAsync()) return nullptr;  // a piece of work of another thread's, not something this one is inside of
  const std::string_view name = function.name();
  const bool optimizer = name.starts_with(kOptimizer);
  const auto flags = static_cast<std::uint8_t>(record::kScopeUser | (optimizer ? record::kScopeOptimizer : 0));
  FrameStack* const stack = Host().push_range(&function, flags, name.data(), name.size());
  return stack == nullptr ? nullptr : std::make_unique<RangeContext>(stack);
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& function) {
  switch (function.scope()) {
    case at::RecordScope::FUNCTION:
      EnterOperator(function);
      return nullptr;
    case at::RecordScope::BACKWARD_FUNCTION:
      EnterBackwardNode(function);
      return nullptr;
    default:
      return EnterRange(function);
  }
}

void LeaveBackwardNode(const at::RecordFunction& function) {
  for (std::size_t at = t_ops.nodes.size(); at > 0; --at) {
    if (t_ops.nodes[at - 1].function != &function) continue;
    if (t_ops.nodes[at - 1].accumulates && Host().recording()) RecordGradient();
    t_ops.nodes.resize(at - 1);
    return;
  }
}

void LeaveRange(const at::RecordFunction& function, const RangeContext& context) {
  Host().end(context.stack, &function);
  if (!std::string_view(function.name()).starts_with(kOptimizerStep)) return;
  if (g_steps.fetch_add(1, std::memory_order_relaxed) + 1 == Host().steps_with_ops) at::disableCallback(g_operators);
}

void OnEnd(const at::RecordFunction& function, at::ObserverContext* context) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) LeaveBackwardNode(function);
  if (context == nullptr) {
    Host().pop(&function);
  } else {
    LeaveRange(function, *static_cast<const RangeContext*>(context));
  }
}

}  // namespace

void StartOps() {
  at::addGlobalCallback(at::RecordFunctionCallback(OnStart, OnEnd)
                            .scopes({at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
  if (Host().steps_with_ops == 0) return;
  g_operators = at::addGlobalCallback(at::RecordFunctionCallback(OnStart, OnEnd).scopes({at::RecordScope::FUNCTION}));
}

void RememberPlace(const void* node) try {
  const auto& created = **static_cast<const c10::intrusive_ptr<torch::autograd::Node>*>(node);
  const auto sequence = static_cast<std::int64_t>(created.sequence_nr());
  if (sequence < 0) return;  // gradient accumulators have no number of their own
  if (PlaceRing* const places = PlacesOfThisThread()) places->Set(sequence, Host().place());
} catch (...) {
  return;
}

}  // namespace ledger::adapter
