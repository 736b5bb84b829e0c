#include "ledger/attribution/infer_phases.h"

#include <algorithm>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace ledger::attribution {
namespace {

using record::Kind;
using record::PhaseKind;

class Inference {
 public:
  Inference(const format::LedgerFile& file, const ScopeFactsTable& scopes) : file_(file), scopes_(scopes) {}

  std::vector<PhaseInterval> Run() {
    const auto slots = file_.slots();
    for (std::uint64_t i = 0; i < slots.size(); ++i) {
      if (!slots[i].committed()) continue;
      const Kind kind = slots[i].kind();
      if (kind == Kind::kBlockAlloc || kind == Kind::kBlockFree) Block(slots[i], kind == Kind::kBlockAlloc, i);
      if (kind == Kind::kBlockOom) ran_out_ = true;
      if (kind == Kind::kCollective && in_backward_) reduced_ |= Reduces(slots[i].As<record::Collective>());
    }
    if (backwards_ == 0) return {};
    Settle();
    // Where gradients were given back and then memory ran out, it was a forward that did not come to its end.
    if (!in_backward_) EndGap(slots.size(), /*forward_follows=*/ran_out_ && last_gradient_free_ != 0);
    if (backwards_ == 1) BeginFirstForward();
    return std::move(intervals_);
  }

 private:
  // A forward whose beginning is not known yet. It begins behind the last gradient that was given back, unless there
  // was an activation already (a program may drop its gradients right before the next backward), or there is none: then
  // behind the last block of its gap that stays.
  struct OpenForward {
    std::size_t interval = 0;                                  // 0: none
    std::uint64_t earliest = 0;                                // behind the backward before it
    bool gave_back = false;                                    // gradients, in its gap
    absl::flat_hash_map<std::uint64_t, std::uint64_t> blocks;  // made in its gap and alive: address → slot
    // The first block of the gap that its backward freed: an activation, so the forward has begun by then.
    std::uint64_t activation = std::numeric_limits<std::uint64_t>::max();
  };

  static bool Reduces(const record::Collective& call) {
    return call.operation == record::Operation::kAllReduce || call.operation == record::Operation::kReduceScatter;
  }

  void Block(const format::Slot& slot, bool alloc, std::uint64_t index) {
    const auto& block = slot.As<record::Block>();
    const ScopeFacts& facts = scopes_.Get(block.scope);
    const std::uint32_t thread = slot.commit().thread;
    if (first_thread_ == 0) first_thread_ = thread;
    const bool backward = facts.backward != 0 || thread != first_thread_;
    if (backward != in_backward_) backward ? BeginBackward(index) : BeginGap(index);
    if (facts.optimizer && !backward) Optimizer(index);
    if (alloc) {
      if (backward) of_backward_.insert(block.address);
      if (backwards_ == 0) first_blocks_[block.address] = index;
      if (backwards_ != 0 && !backward) gap_blocks_[block.address] = index;
      return;
    }
    gap_blocks_.erase(block.address);
    if (const auto made = open_.blocks.find(block.address); made != open_.blocks.end()) {
      if (backward) open_.activation = std::min(open_.activation, made->second);
      open_.blocks.erase(made);
    }
    if (of_backward_.erase(block.address) != 0 && !backward) last_gradient_free_ = index;
    if (backwards_ <= 1) first_blocks_.erase(block.address);
  }

  void BeginBackward(std::uint64_t index) {
    if (backwards_ != 0) {
      Settle();
      const std::size_t forward = EndGap(index, /*forward_follows=*/true);
      open_ = {};
      if (forward != 0) open_ = OpenForward{forward, gap_ + 1, last_gradient_free_ != 0, std::move(gap_blocks_)};
      gap_blocks_.clear();
    }
    if (backwards_ == 1) BeginFirstForward();
    ++backwards_;
    in_backward_ = true;
    reduced_ = false;
    intervals_.push_back({index, PhaseKind::kBackward, step_});
  }

  void BeginGap(std::uint64_t index) {
    in_backward_ = false;
    gap_ = index;
    ran_out_ = false;
    gap_blocks_.clear();
    last_gradient_free_ = optimizer_begin_ = optimizer_end_ = 0;
  }

  void Optimizer(std::uint64_t index) {
    if (optimizer_begin_ == 0) optimizer_begin_ = index;
    optimizer_end_ = index + 1;
  }

  // What lies between a backward and the next one, or the end. Returns the interval of a forward whose beginning is
  // open.
  std::size_t EndGap(std::uint64_t end, bool forward_follows) {
    std::uint64_t begin = gap_, stepped = 0;
    bool open = false;
    if (optimizer_begin_ != 0) {
      if (optimizer_begin_ > gap_) intervals_.push_back({gap_, PhaseKind::kBetween, step_});
      begin = optimizer_begin_;
      stepped = optimizer_end_;
    } else if (last_gradient_free_ != 0) {
      stepped = last_gradient_free_ + 1;
      open = forward_follows;
    } else if (!forward_follows) {
      stepped = end;
    } else if (reduced_) {
      stepped = gap_ + 1;
      open = true;
    }
    if (stepped != 0) {
      intervals_.push_back({begin, PhaseKind::kOptimizer, step_});
      ++step_;
    }
    if (stepped >= end && !open) return 0;
    const std::uint64_t rest = stepped == 0 ? gap_ : stepped;
    intervals_.push_back({rest, forward_follows ? PhaseKind::kForward : PhaseKind::kBetween, step_});
    return open ? intervals_.size() - 1 : 0;
  }

  // A backward later, what the program held from one step to the next is gone; what is still there is optimizer state.
  void Settle() {
    if (open_.interval == 0) return;
    std::uint64_t& from = intervals_[open_.interval].from;
    if (!open_.gave_back || open_.activation < from) {
      from = open_.earliest;
      for (const auto& [address, slot] : open_.blocks) {
        if (slot < open_.activation) from = std::max(from, slot + 1);
      }
    }
    // Nothing was allocated between the gradients that were given back and the next backward.
    if (from == intervals_[open_.interval + 1].from) {
      intervals_.erase(intervals_.begin() + static_cast<std::ptrdiff_t>(open_.interval));
    }
    open_.interval = 0;
  }

  // Once it is known what of the blocks before the first backward stays.
  void BeginFirstForward() {
    std::uint64_t last = 0;
    for (const auto& [address, slot] : first_blocks_) last = std::max(last, slot + 1);
    first_blocks_.clear();
    if (intervals_.front().from <= last) return;
    intervals_.insert(intervals_.begin(), {last, PhaseKind::kForward, 0});
    if (open_.interval != 0) ++open_.interval;
  }

  const format::LedgerFile& file_;
  const ScopeFactsTable& scopes_;
  std::vector<PhaseInterval> intervals_;
  std::uint32_t first_thread_ = 0;
  bool in_backward_ = false;
  bool reduced_ = false;  // gradients, in the last backward
  bool ran_out_ = false;  // memory, since the last backward
  OpenForward open_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> gap_blocks_;  // made since the last backward and alive
  std::uint64_t backwards_ = 0, step_ = 0;
  std::uint64_t gap_ = 0, last_gradient_free_ = 0, optimizer_begin_ = 0, optimizer_end_ = 0;
  absl::flat_hash_set<std::uint64_t> of_backward_;                  // alive, by address
  absl::flat_hash_map<std::uint64_t, std::uint64_t> first_blocks_;  // made before the first backward: address → slot
};

}  // namespace

std::vector<PhaseInterval> InferPhases(const format::LedgerFile& file, const ScopeFactsTable& scopes) {
  return Inference(file, scopes).Run();
}

}  // namespace ledger::attribution
