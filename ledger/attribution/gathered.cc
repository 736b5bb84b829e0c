#include "ledger/attribution/gathered.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ledger/attribution/gather_groups.h"
#include "ledger/replay/record_fields.h"

namespace ledger::attribution {
namespace {

using record::PhaseKind;

class Sweep {
 public:
  Sweep(const Grounds& grounds, const DeviceLives& lives, const GatherGroups& groups)
      : grounds_(grounds), lives_(lives), groups_(groups), states_(groups.size()) {}

  GatheredState Run() {
    std::uint64_t position = 0;
    for (const std::uint64_t event : lives_.events) {
      const Life& life = lives_.lives[event >> 1];
      if (life.category != Category::kCommBuffer && life.category != Category::kWorkspace) continue;
      const bool end = (event & 1) != 0;
      const std::uint64_t slot = end ? life.end : life.begin;
      WatchUntil(slot, position);
      end ? Subtract(event >> 1) : Add(event >> 1);
      position = slot;
    }
    return std::move(result_);
  }

 private:
  struct GroupState {
    std::uint64_t whole = 0, outputs = 0, blocks = 0;
    bool ahead = false;
  };

  // What happened from `from` on: does a module run whose parameters were gathered ahead of it?
  void WatchUntil(std::uint64_t end, std::uint64_t from) {
    const auto slots = grounds_.file.slots();
    for (std::uint64_t slot = from; slot < end && groups_ahead_ != 0; ++slot) {
      if (slots[slot].committed()) Use(groups_.OfScope(replay::ScopeOf(slots[slot])));
    }
  }

  void Use(std::uint32_t group) {
    if (group == kNoGroup || !states_[group].ahead) return;
    states_[group].ahead = false;
    --groups_ahead_;
    now_.ahead -= states_[group].whole + states_[group].outputs;
    now_.whole += states_[group].whole;
    now_.outputs += states_[group].outputs;
  }

  // Where the agent has named what lies there, it is a parameter, be it in the output itself.
  bool IsOutput(const Life& life) const {
    return life.role == Role::kAllGatherOutput || lives_.FactsOf(life).name == kNever;
  }

  std::uint64_t& Gathered(const Life& life, const GroupState& state) {
    if (state.ahead) return now_.ahead;
    return IsOutput(life) ? now_.outputs : now_.whole;
  }

  // The account of a block that is not gathered.
  std::uint64_t& Account(const Life& life) {
    if (life.category == Category::kWorkspace) return now_.workspace;
    return life.role == Role::kReduceScatterInput ? now_.reduce_scatter : now_.other_buffers;
  }

  void Add(std::uint64_t index) {
    const Life& life = lives_.lives[index];
    const std::uint32_t group = groups_.OfLife(index);
    if (group == kNoGroup) {
      Account(life) += life.bytes;
    } else {
      GroupState& state = states_[group];
      if (state.blocks++ == 0 && !groups_.AlwaysInUse(group)) {
        state.ahead = true;
        ++groups_ahead_;
      }
      (IsOutput(life) ? state.outputs : state.whole) += life.bytes;
      Gathered(life, state) += life.bytes;
      // Gathered by the module itself, when it is about to run.
      Use(groups_.OfScope(replay::ScopeOf(grounds_.file.slots()[life.begin])));
    }
    now_.slot = life.begin;
    CompareMaxima();
  }

  void Subtract(std::uint64_t index) {
    const Life& life = lives_.lives[index];
    const std::uint32_t group = groups_.OfLife(index);
    if (group == kNoGroup) {
      Account(life) -= life.bytes;
      return;
    }
    GroupState& state = states_[group];
    (IsOutput(life) ? state.outputs : state.whole) -= life.bytes;
    Gathered(life, state) -= life.bytes;
    if (--state.blocks == 0 && state.ahead) {
      state.ahead = false;
      --groups_ahead_;
    }
  }

  void CompareMaxima() {
    if (now_.Gathered() > result_.largest.Gathered()) {
      result_.largest = now_;
      DescribeGroups();
    }
    if (now_.ahead > result_.most_ahead.ahead) result_.most_ahead = now_;
    if (now_.Total() > result_.transient.Total()) result_.transient = now_;
    result_.largest_reduce_scatter = std::max(result_.largest_reduce_scatter, now_.reduce_scatter);
  }

  void DescribeGroups() {
    result_.groups.clear();
    for (std::uint32_t group = 0; group < states_.size(); ++group) {
      const GroupState& state = states_[group];
      if (state.blocks == 0) continue;
      result_.groups.push_back({groups_.name(group), state.whole + state.outputs, state.blocks, state.ahead});
    }
    std::stable_sort(result_.groups.begin(), result_.groups.end(),
                     [](const GatheredGroup& a, const GatheredGroup& b) { return a.bytes > b.bytes; });
  }

  const Grounds& grounds_;
  const DeviceLives& lives_;
  const GatherGroups& groups_;
  std::vector<GroupState> states_;
  std::size_t groups_ahead_ = 0;
  TransientUse now_;
  GatheredState result_;
};

// Between the passes of a program nothing has to be whole.
class HeldFinder {
 public:
  HeldFinder(const Grounds& grounds, const DeviceLives& lives, const GatherGroups& groups)
      : intervals_(grounds.phases.intervals()), lives_(lives), groups_(groups) {
    next_pause_.resize(intervals_.size());
    forwards_.resize(intervals_.size());
    std::uint32_t pause = kNoPhase;
    for (std::size_t i = intervals_.size(); i-- > 0;) {
      next_pause_[i] = pause;
      if (intervals_[i].kind == PhaseKind::kBetween || intervals_[i].kind == PhaseKind::kSetup) {
        pause = static_cast<std::uint32_t>(i);
      }
    }
    for (std::size_t i = 1; i < intervals_.size(); ++i) {
      const PhaseKind kind = intervals_[i].kind;
      const bool forward = kind == PhaseKind::kForward || kind == PhaseKind::kEvaluation;
      forwards_[i] = forwards_[i - 1] + (forward ? 1 : 0);
    }
  }

  std::vector<HeldGathered> Find() const {
    std::map<std::string, HeldGathered> by_name;
    for (std::uint64_t i = 0; i < lives_.lives.size(); ++i) {
      if (groups_.OfLife(i) != kNoGroup && IsHeld(lives_.lives[i])) {
        AddTo(by_name[groups_.name(groups_.OfLife(i))], groups_.name(groups_.OfLife(i)), lives_.lives[i]);
      }
    }
    std::vector<HeldGathered> held;
    for (auto& [name, each] : by_name) held.push_back(std::move(each));
    std::stable_sort(held.begin(), held.end(),
                     [](const HeldGathered& a, const HeldGathered& b) { return a.bytes > b.bytes; });
    return held;
  }

 private:
  std::uint32_t Last() const { return static_cast<std::uint32_t>(intervals_.size() - 1); }

  // Alive all through a pause, or in the one that the ledger ends with.
  bool IsHeld(const Life& life) const {
    const std::uint32_t pause = next_pause_[life.begin_phase];
    if (pause == kNoPhase) return false;
    return life.end_phase == kNoPhase || life.end_phase > pause || (pause == Last() && life.end_phase == pause);
  }

  // Of several times that a group was held, the longest counts, and of equal ones the first.
  void AddTo(HeldGathered& held, const std::string& name, const Life& life) const {
    const std::uint32_t end = std::min(life.end_phase, Last());
    const std::uint64_t forwards = forwards_[end] - forwards_[life.begin_phase];
    if (held.blocks != 0 && (forwards < held.forwards || life.begin >= held.until)) return;
    if (held.blocks == 0 || forwards > held.forwards) held = {name, 0, 0, life.begin, life.end, 0, forwards};
    held.bytes += life.bytes;
    ++held.blocks;
    held.steps = intervals_[end].step - std::min(intervals_[life.begin_phase].step, intervals_[end].step);
    held.since = std::min(held.since, life.begin);
    held.until = std::max(held.until, life.end);
  }

  const std::vector<PhaseInterval>& intervals_;
  const DeviceLives& lives_;
  const GatherGroups& groups_;
  std::vector<std::uint32_t> next_pause_;  // by interval, itself not included
  std::vector<std::uint64_t> forwards_;    // that have begun by then
};

}  // namespace

GatheredState GatheredOf(const Grounds& grounds, const DeviceLives& lives) {
  const bool any = std::any_of(lives.lives.begin(), lives.lives.end(), [](const Life& life) {
    return life.category == Category::kCommBuffer || life.category == Category::kWorkspace;
  });
  if (!any) return {};
  const GatherGroups groups(grounds, lives);
  GatheredState state = Sweep(grounds, lives, groups).Run();
  state.held = HeldFinder(grounds, lives, groups).Find();
  return state;
}

}  // namespace ledger::attribution
