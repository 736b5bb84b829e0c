#include "ledger/attribution/classify.h"

#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "ledger/attribution/infer_buckets.h"
#include "ledger/attribution/infer_copies.h"
#include "ledger/attribution/infer_inputs.h"
#include "ledger/attribution/infer_recompute.h"
#include "ledger/attribution/infer_scratch.h"
#include "ledger/replay/record_fields.h"

namespace ledger::attribution {
namespace {

using record::NameCategory;
using record::PhaseKind;

struct Verdict {
  Category category = Category::kUnknown;
  Evidence evidence = Evidence::kNone;
  Role role = Role::kNone;
};

Category CategoryOf(NameCategory name) {
  switch (name) {
    case NameCategory::kParameter:
      return Category::kParameter;
    case NameCategory::kMasterParameter:
      return Category::kMasterParameter;
    case NameCategory::kBuffer:
      return Category::kBuffer;
    case NameCategory::kGradient:
      return Category::kGradient;
    case NameCategory::kOptimizerState:
      return Category::kOptimizerState;
    case NameCategory::kGatheredParameter:
    case NameCategory::kCommunicationBuffer:
      return Category::kCommBuffer;
    case NameCategory::kInput:
      return Category::kInput;
    case NameCategory::kWorkspace:
      return Category::kWorkspace;
    case NameCategory::kUnknown:
      break;
  }
  return Category::kUnknown;
}

// A tag that is the name of a category says so; any other is a description of something that the program keeps.
Category CategoryOfTag(absl::string_view tag) {
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    if (absl::StartsWith(tag, CategoryName(category))) return category;
  }
  return Category::kBuffer;
}

class Classifier {
 public:
  Classifier(const Grounds& grounds, const DeviceLives& lives)
      : file_(grounds.file), scopes_(grounds.scopes), phases_(grounds.phases), lives_(lives) {
    if (!scopes_.nodes_observed()) {
      recomputed_ = InferRecompute(lives, phases_);
      scratch_ = InferScratch(lives, phases_);
    }
    if (phases_.inferred()) {
      first_activation_ = FirstActivations(lives, phases_);
      FindStateOfOptimizers();
    }
    reduces_ = std::any_of(lives.facts.begin(), lives.facts.end(), [](const Facts& facts) {
      return facts.role == Role::kAllReduceBuffer || facts.role == Role::kReduceScatterInput;
    });
    FindBackwardsThatGiveValues();
    gradients_have_names_ =
        !phases_.inferred() &&
        std::any_of(lives.facts.begin(), lives.facts.end(), [&](const Facts& facts) { return IsNamedGradient(facts); });
  }

  Verdict Judge(const Life& life) const {
    if (life.facts != 0) {
      const Facts& facts = lives_.FactsOf(life);
      if (const auto named = ByName(life, facts)) return *named;
      if (const auto gathered = ByGather(life)) return *gathered;
      if (const auto graph = ByGraph(life, facts)) return *graph;
      if (const auto call = ByCall(life, facts)) return *call;
    } else if (const auto gathered = ByGather(life)) {
      return *gathered;
    }
    return ByPhase(life);
  }

 private:
  // A gradient that is part of a loss to come (create_graph): what the graph saves of its backward outlives it. What a
  // region saves that runs again does not.
  bool IsOfGraphOfBackward(const Life& life, const Facts& facts) const {
    const bool saved = facts.saved != kNever || facts.packed != kNever;
    return saved && BornIn(life) == PhaseKind::kBackward && !DiesInItsPhase(life) && !ScopeOf(life).recompute;
  }

  // The same where the graph is not seen. Where ranks reduce gradients, it may be a gradient that was waiting for that,
  // or what their compression left over.
  bool IsLikelyOfGraphOfBackward(const Life& life) const {
    return phases_.inferred() && !scopes_.nodes_observed() && !reduces_ && DiesInBackward(life);
  }

  // Backwards that stored no gradient gave what they made to the program, as values (torch.autograd.grad). What became
  // a gradient then has its name by the optimizer's step.
  void FindBackwardsThatGiveValues() {
    const auto& intervals = phases_.intervals();
    const auto is = [](PhaseKind kind) {
      return [kind](const PhaseInterval& interval) { return interval.kind == kind; };
    };
    if (phases_.inferred() || !scopes_.nodes_observed()) return;
    if (std::none_of(intervals.begin(), intervals.end(), is(PhaseKind::kOptimizer))) return;
    gives_values_.resize(intervals.size());
    std::transform(intervals.begin(), intervals.end(), gives_values_.begin(), is(PhaseKind::kBackward));
    for (const Mention& mention : lives_.mentions) {
      const format::Slot& slot = file_.slots()[mention.slot];
      if (slot.kind() != record::Kind::kName || (slot.As<record::Name>().flags & record::kNameFromGraph) == 0) continue;
      gives_values_[phases_.IndexAt(mention.slot)] = false;
    }
  }
  bool IsGivenAsValue(const Life& life) const { return !gives_values_.empty() && gives_values_[life.begin_phase]; }

  void FindStateOfOptimizers() {
    std::uint64_t bytes = 0;
    for (const Life& life : lives_.lives) {
      if (BornIn(life) == PhaseKind::kOptimizer && SpansSteps(life)) bytes += life.bytes;
      state_before_.push_back(bytes);
    }
  }
  // Optimizers make their state when they step first. Where there is that much of it, what stays is another thing.
  bool ThereIsStateBefore(const Life& life) const {
    const auto index = static_cast<std::size_t>(&life - lives_.lives.data());
    return state_before_[index] >= life.bytes;
  }

  // An inferred forward begins where the phase before it ends, and so with the batch of data.
  bool PrecedesActivations(const Life& life) const {
    if (first_activation_.empty()) return false;
    const std::uint64_t first = first_activation_[life.begin_phase];
    return first != kNever && life.begin < first;
  }

  const ScopeFacts& ScopeOf(const Life& life) const { return scopes_.Get(ScopeIdOf(life)); }
  std::uint32_t ScopeIdOf(const Life& life) const {
    const format::Slot& slot = file_.slots()[life.begin];
    return slot.kind() == record::Kind::kBlockAlloc ? slot.As<record::Block>().scope : replay::ScopeOf(slot);
  }
  PhaseKind BornIn(const Life& life) const { return phases_.intervals()[life.begin_phase].kind; }
  bool DiesInItsPhase(const Life& life) const { return life.end_phase == life.begin_phase; }
  // Is it alive when the backward begins that its forward leads to?
  bool ReachesBackward(const Life& life) const {
    const std::uint32_t backward = phases_.BackwardFrom(life.begin_phase);
    return backward != kNoPhase && life.end_phase >= backward;
  }
  // In one of those that follow: another model's may come first.
  bool DiesInBackward(const Life& life) const {
    return life.end_phase != kNoPhase && phases_.intervals()[life.end_phase].kind == PhaseKind::kBackward;
  }
  bool DiesInNextBackward(const Life& life) const { return attribution::DiesInNextBackward(life, phases_); }
  bool SpansSteps(const Life& life) const { return attribution::SpansSteps(life, phases_); }

  bool IsNamedGradient(const Facts& facts) const {
    return facts.name != kNever && file_.slots()[facts.name].As<record::Name>().category == NameCategory::kGradient;
  }

  // Made in backward for a backward of another step: what is left over by a compression of gradients, say. No gradient
  // is freed there, and one that stays for longer has its name, where gradients have names.
  bool IsKeptForLaterBackward(const Life& life) const {
    const auto& intervals = phases_.intervals();
    const std::uint64_t step = intervals[life.begin_phase].step;
    if (DiesInBackward(life) && intervals[life.end_phase].step > step) return true;
    if (!gradients_have_names_) return false;
    std::uint32_t backward = life.begin_phase;
    while (backward != kNoPhase && intervals[backward].step == step) {
      const std::size_t next = std::size_t{backward} + 1;
      backward = next < intervals.size() ? phases_.BackwardFrom(next) : kNoPhase;
    }
    return backward != kNoPhase && life.end_phase >= backward;
  }

  std::optional<Verdict> ByName(const Life& life, const Facts& facts) const {
    if (facts.tag != kNever) {
      const auto& tag = file_.slots()[facts.tag].As<record::Tag>();
      return Verdict{CategoryOfTag(file_.Text(tag.text)), Evidence::kNamed};
    }
    if (facts.name == kNever) return std::nullopt;
    const auto& name = file_.slots()[facts.name].As<record::Name>();
    // What one model made and another one is called with, cut off from its graph, is no data.
    if (name.category == NameCategory::kInput && ScopeOf(life).module != 0) return std::nullopt;
    Verdict verdict{CategoryOf(name.category), Evidence::kNamed};
    if (name.category == NameCategory::kWorkspace) verdict.evidence = Evidence::kCall;
    if (name.category == NameCategory::kGatheredParameter) verdict.role = Role::kGatheredParameter;
    if (name.category == NameCategory::kCommunicationBuffer) verdict.role = facts.role;
    if (name.category == NameCategory::kGradient && OwnerIsGathered(facts)) verdict.role = Role::kUnsharded;
    if (name.category == NameCategory::kGradient && OwnerIsActivation(facts))
      verdict.category = Category::kActivationGradient;
    if (verdict.category == Category::kUnknown) return std::nullopt;
    return verdict;
  }

  bool OwnerIsGathered(const Facts& facts) const {
    if (facts.owner == kNever) return false;
    const Facts& owner = lives_.FactsOf(lives_.lives[facts.owner]);
    return owner.name != kNever &&
           file_.slots()[owner.name].As<record::Name>().category == NameCategory::kGatheredParameter;
  }

  // A checkpointed region that is run by reentrance is a graph of its own: what it was called with is a leaf there,
  // whose gradient is accumulated like a parameter's. So is data by which a loss is differentiated.
  bool OwnerIsActivation(const Facts& facts) const {
    if (facts.owner == kNever) return false;
    const Life& owner = lives_.lives[facts.owner];
    const PhaseKind born = BornIn(owner);
    const std::uint64_t name = lives_.FactsOf(owner).name;
    const bool named = name != kNever;
    if (named && file_.slots()[name].As<record::Name>().category == NameCategory::kInput) return true;
    return !named && !ByGather(owner) && (born == PhaseKind::kForward || born == PhaseKind::kBackward);
  }

  // What FSDP allocates while it gathers is no activation, though the graph saves it.
  std::optional<Verdict> ByGather(const Life& life) const {
    if (ScopeOf(life).sharding != Sharding::kGather) return std::nullopt;
    const Role call = life.facts == 0 ? Role::kNone : lives_.FactsOf(life).role;
    if (call != Role::kNone) return Verdict{Category::kCommBuffer, Evidence::kCall, call};
    return Verdict{Category::kCommBuffer, Evidence::kScope, Role::kGatheredParameter};
  }

  std::optional<Verdict> ByGraph(const Life& life, const Facts& facts) const {
    // A leaf that is saved as a view of itself is known by its gradient.
    const bool leaf = facts.saved_as_leaf || (facts.has_gradient && SpansSteps(life));
    if (leaf && !DiesInNextBackward(life)) return Verdict{Category::kParameter, Evidence::kGraph};
    if (facts.saved == kNever && facts.packed == kNever) return std::nullopt;
    const PhaseKind born = BornIn(life);
    if (IsOfGraphOfBackward(life, facts)) return Verdict{Category::kSavedActivation, Evidence::kGraph};
    if (born == PhaseKind::kBackward || ScopeOf(life).recompute) {
      return Verdict{Category::kRecomputedActivation, Evidence::kGraph};
    }
    if (born != PhaseKind::kForward && born != PhaseKind::kEvaluation) {
      // Made before the forward began: data, or what the program keeps.
      if (facts.saved != kNever || ReachesBackward(life)) return Verdict{Category::kInput, Evidence::kGraph};
      return std::nullopt;
    }
    if (PrecedesActivations(life)) return Verdict{Category::kInput, Evidence::kGraph};
    if (facts.saved != kNever) return Verdict{Category::kSavedActivation, Evidence::kGraph};
    // Hooks took it over. What is alive in backward all the same is kept by them: the boundary of a checkpoint.
    if (ReachesBackward(life)) return Verdict{Category::kSavedActivation, Evidence::kGraph, Role::kCheckpointBoundary};
    return std::nullopt;
  }

  std::optional<Verdict> ByCall(const Life& life, const Facts& facts) const {
    if (facts.role == Role::kNone) return std::nullopt;
    if (facts.call == kNever) return Verdict{Category::kCommBuffer, Evidence::kLifetime, facts.role};
    const bool reduced = facts.role == Role::kReduceScatterOutput || facts.role == Role::kAllReduceBuffer;
    // Inferred steps may be microbatches, whose gradients are reduced into the ones before.
    const bool kept = !phases_.inferred() && IsKeptForLaterBackward(life);
    if (reduced && BornIn(life) == PhaseKind::kBackward && !DiesInItsPhase(life) && !kept) {
      return Verdict{Category::kGradient, Evidence::kCall, facts.role};
    }
    const bool sends = facts.role == Role::kAllGatherInput || facts.role == Role::kBroadcastBuffer;
    if (sends && BornIn(life) == PhaseKind::kSetup && SpansSteps(life)) {
      // What was there first and stays is no buffer for the call: it is the shard, or the weight, that others are sent.
      return Verdict{Category::kParameter, Evidence::kLifetime, facts.role};
    }
    if (IsActivationOfCall(life, facts.role)) {
      return Verdict{Category::kSavedActivation, Evidence::kLifetime, facts.role};
    }
    return Verdict{Category::kCommBuffer, Evidence::kCall, facts.role};
  }

  // Where nobody tells what the graph saves: what a call of the forward filled or sent, and backward gives back, is
  // part of a model that is itself spread over ranks. Parameters are gathered, and so an all-gather tells nothing.
  bool IsActivationOfCall(const Life& life, Role role) const {
    const bool gathers = role == Role::kAllGatherOutput || role == Role::kAllGatherInput;
    return !scopes_.nodes_observed() && !gathers && BornIn(life) == PhaseKind::kForward && DiesInNextBackward(life);
  }

  // What remains: where it was made, and when it came and went.
  Verdict ByPhase(const Life& life) const {
    const ScopeFacts& facts = ScopeOf(life);
    const bool known = !phases_.inferred() || facts.op != 0 || facts.module != 0 || facts.range != 0;
    const Evidence evidence = known ? Evidence::kScope : Evidence::kLifetime;
    if (facts.sharding == Sharding::kReduce) return {Category::kCommBuffer, evidence};
    if (facts.optimizer || BornIn(life) == PhaseKind::kOptimizer) return OfOptimizer(life, evidence);
    if (facts.backward != 0 || BornIn(life) == PhaseKind::kBackward) return OfBackward(life, facts, evidence);
    switch (BornIn(life)) {
      case PhaseKind::kForward:
        return OfForward(life, evidence);
      case PhaseKind::kEvaluation:
        return {Category::kTemporary, evidence, DiesInItsPhase(life) ? Role::kNone : Role::kHeldByProgram};
      default:
        return OutsideOfSteps(life, evidence);
    }
  }

  Verdict OfOptimizer(const Life& life, Evidence evidence) const {
    if (DiesInItsPhase(life) || !SpansSteps(life)) return {Category::kTemporary, evidence};
    return {Category::kOptimizerState, Evidence::kLifetime};
  }

  Verdict OfBackward(const Life& life, const ScopeFacts& facts, Evidence evidence) const {
    if (!DiesInItsPhase(life)) {
      if (IsLikelyOfGraphOfBackward(life)) return {Category::kSavedActivation, Evidence::kLifetime};
      if (IsGivenAsValue(life)) return {Category::kActivationGradient, evidence};
      if (IsKeptForLaterBackward(life)) return {Category::kBuffer, evidence, Role::kStateOfProgram};
      return {Category::kGradient, Evidence::kLifetime};
    }
    const std::uint32_t freed_in = replay::ScopeOf(file_.slots()[life.end]);
    if (facts.recompute) {
      // What the graph saves of it is known by the graph, where that is observed. Otherwise: by being still there when
      // the region has run again.
      const bool kept = !scopes_.nodes_observed() && !scopes_.Get(freed_in).recompute;
      return {kept ? Category::kRecomputedActivation : Category::kTemporary, evidence};
    }
    if (!scopes_.nodes_observed()) return MadeAndGoneInBackward(life, evidence);
    if (facts.backward == 0) return {Category::kTemporary, evidence};
    const bool within_node = scopes_.Inside(freed_in, facts.backward);
    return {within_node ? Category::kTemporary : Category::kActivationGradient, evidence};
  }

  Verdict MadeAndGoneInBackward(const Life& life, Evidence evidence) const {
    const auto index = static_cast<std::size_t>(&life - lives_.lives.data());
    if (recomputed_[index] == Recompute::kValue) return {Category::kRecomputedActivation, Evidence::kLifetime};
    if (recomputed_[index] == Recompute::kScratch || scratch_[index]) {
      return {Category::kTemporary, Evidence::kLifetime};
    }
    return {Category::kActivationGradient, evidence};
  }

  // A forward that ends where memory runs out comes to no backward. What it had kept by then was mostly for that.
  bool AliveWhenMemoryRanOut(const Life& life) const {
    if (scopes_.nodes_observed()) return false;  // the graph tells
    const auto& slots = lives_.exhausted;
    const auto first = std::lower_bound(slots.begin(), slots.end(), life.begin);
    return first != slots.end() && *first < life.end;
  }

  Verdict OfForward(const Life& life, Evidence evidence) const {
    const bool ran_out = AliveWhenMemoryRanOut(life);
    if (!ReachesBackward(life)) {
      if (ran_out) return {Category::kSavedActivation, Evidence::kLifetime};
      return {Category::kTemporary, evidence};
    }
    if (DiesInBackward(life)) return {Category::kSavedActivation, Evidence::kLifetime};
    if (SpansSteps(life) && phases_.inferred() && life.begin_phase > phases_.BackwardFrom(0) &&
        !ThereIsStateBefore(life)) {
      // Behind the first backward, and its step was not told from the next forward.
      return {Category::kOptimizerState, Evidence::kLifetime};
    }
    if (SpansSteps(life)) return {Category::kBuffer, evidence, Role::kStateOfProgram};
    if (PrecedesActivations(life)) return {Category::kInput, evidence};
    if (ran_out) return {Category::kSavedActivation, Evidence::kLifetime};
    return {Category::kTemporary, evidence, Role::kHeldByProgram};
  }

  Verdict OutsideOfSteps(const Life& life, Evidence evidence) const {
    const bool setup = BornIn(life) == PhaseKind::kSetup;
    if (SpansSteps(life)) {
      if (evidence == Evidence::kLifetime && setup) return {Category::kParameter, evidence};
      return {Category::kBuffer, evidence, Role::kStateOfProgram};
    }
    if (DiesInItsPhase(life)) return {Category::kTemporary, evidence};
    return {Category::kInput, evidence};
  }

  const format::LedgerFile& file_;
  const ScopeFactsTable& scopes_;
  const PhaseTimeline& phases_;
  const DeviceLives& lives_;
  bool gradients_have_names_ = false;
  bool reduces_ = false;                         // gradients, over ranks
  std::vector<bool> gives_values_;               // by interval; empty where that is not known
  std::vector<std::uint64_t> state_before_;      // by life: bytes made so far in optimizers' steps and kept; likewise
  std::vector<std::uint64_t> first_activation_;  // by interval; empty where the agent told the phases
  std::vector<Recompute> recomputed_;            // by life; empty where scopes tell
  std::vector<bool> scratch_;                    // by life; empty where scopes tell
};

}  // namespace

void Classify(const Grounds& grounds, DeviceLives& lives) {
  const Classifier classifier(grounds, lives);
  for (Life& life : lives.lives) {
    const Verdict verdict = classifier.Judge(life);
    life.category = verdict.category;
    life.evidence = verdict.evidence;
    life.role = verdict.role;
  }
  if (!grounds.phases.inferred()) return;
  InferGradientsInBuckets(grounds.phases, lives);
  InferCopies(grounds.phases, lives);
}

}  // namespace ledger::attribution
