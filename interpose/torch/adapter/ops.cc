// The framework's own record of what runs: operators, backward nodes, and ranges of its profiler, as scope frames.
//
// Operators are observed in the first steps only (LEDGER_OPS): having each of them call us costs a process that is
// bound by its CPU more than anything else here, and steps repeat. Ranges are observed until the agent takes over. An
// observer that is no longer wanted is removed, not disabled: the framework goes through all that it has.
//
// An op is recomputation when it would make a node (it has a number) while a backward node runs that was entered
// without grad mode: what backward itself computes makes no nodes then. With create_graph grad mode is on inside
// backward, and this rule says nothing: the agent knows by the modules that run there.
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

#include "interpose/torch/adapter/adapter.h"

namespace ledger::adapter {
namespace {

constexpr std::string_view kEvaluate = "autograd::engine::evaluate_function: ";

// A backward node that runs, as the engine's own frame around it tells.
struct BackwardNode {
  const at::RecordFunction* function;
  bool grad_mode;
};
thread_local std::vector<BackwardNode> t_nodes;  // innermost last

// 0: not observed (any more).
std::atomic<at::CallbackHandle> g_operators{0};
std::atomic<at::CallbackHandle> g_ranges{0};

// For a frame that may end on another thread.
struct RangeContext : at::ObserverContext {
  explicit RangeContext(FrameStack* owner) : stack(owner) {}
  FrameStack* stack;
};

std::unique_ptr<at::ObserverContext> EnterOperator(const at::RecordFunction& function) {
  const std::string_view name = function.name();
  if (name.starts_with(kEvaluate)) {
    t_nodes.push_back({&function, c10::GradMode::is_enabled()});
    return nullptr;
  }
  const bool recomputes = function.seqNr() >= 0 && !t_nodes.empty() && !t_nodes.back().grad_mode;
  Host().push_op(&function, recomputes ? record::kScopeRecompute : 0, name.data(), name.size());
  return nullptr;
}

void LeaveOperator(const at::RecordFunction& function, at::ObserverContext*) {
  for (std::size_t at = t_nodes.size(); at > 0; --at) {
    if (t_nodes[at - 1].function != &function) continue;
    t_nodes.resize(at - 1);
    return;
  }
  Host().pop(&function);
}

std::unique_ptr<at::ObserverContext> EnterRange(const at::RecordFunction& function) {
  if (function.isAsync()) return nullptr;  // a piece of work of another thread's, not something this one is inside of
  const std::string_view name = function.name();
  FrameStack* const stack = Host().enter_range(&function, name.data(), name.size());
  return stack == nullptr ? nullptr : std::make_unique<RangeContext>(stack);
}

void LeaveRange(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  const std::string_view name = function.name();
  Host().leave_range(static_cast<const RangeContext*>(context)->stack, &function, name.data(), name.size());
}

}  // namespace

void StartOps() {
  g_ranges =
      at::addGlobalCallback(at::RecordFunctionCallback(EnterRange, LeaveRange).scopes({at::RecordScope::USER_SCOPE}));
  if (Host().steps_with_ops == 0) return;
  g_operators = at::addGlobalCallback(
      at::RecordFunctionCallback(EnterOperator, LeaveOperator).scopes({at::RecordScope::FUNCTION}));
}

void StopObserving(Observed what) {
  auto& observer = what == Observed::kOperators ? g_operators : g_ranges;
  if (const at::CallbackHandle handle = observer.exchange(0); handle != 0) at::removeCallback(handle);
}

}  // namespace ledger::adapter
