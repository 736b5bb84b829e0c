// The framework's own record of what runs: operators, backward nodes, and ranges of its profiler, as scope frames.
//
// An operator's number (seqNr) is that of the node its backward will be. The place of the forward is kept by it, so
// that a backward node, which runs on another thread, can say which module it belongs to.
//
// An op is recomputation when it would make a node (it has a number) while a backward node runs that was entered
// without grad mode: what backward itself computes makes no nodes then. With create_graph grad mode is on inside
// backward, and this rule says nothing: the agent knows by the modules that run there.
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

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
  if (name.starts_with(kEvaluate)) {
    name.remove_prefix(kEvaluate.size());
    flags = record::kScopeBackward;
  } else if (const std::int64_t sequence = function.seqNr(); sequence >= 0) {
    if (!t_ops.nodes.empty() && !t_ops.nodes.back().grad_mode) flags = record::kScopeRecompute;
    if (PlaceRing* const places = PlacesOfThisThread()) places->Set(sequence, Host().place());
  }
  Host().push_op(&function, flags, false, 0, name.data(), name.size());
}

void EnterBackwardNode(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  t_ops.nodes.push_back({&function, c10::GradMode::is_enabled(), name == kAccumulate});
  const std::uint32_t origin = PlaceOfForward(function.forwardThreadId(), function.seqNr());
  // The engine's own frame around the node has the same name, and doesn't know where the node comes from.
  Host().push_op(&function, record::kScopeBackward, true, origin, name.data(), name.size());
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

void OnEnd(const at::RecordFunction& function, at::ObserverContext* context) {
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) LeaveBackwardNode(function);
  if (context == nullptr) {
    Host().pop(&function);
  } else {
    Host().end(static_cast<RangeContext*>(context)->stack, &function);
  }
}

}  // namespace

void StartOps() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(OnStart, OnEnd)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

}  // namespace ledger::adapter
