#include "ledger/attribution/growth.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ledger/attribution/describe_life.h"
#include "ledger/replay/record_fields.h"

namespace ledger::attribution {
namespace {

using record::PhaseKind;

// The slots at which rounds end: the last phase with work of each step.
std::vector<std::uint64_t> EndsOfSteps(const PhaseTimeline& phases) {
  std::vector<std::uint64_t> ends;
  std::uint64_t step = 0;
  for (std::size_t i = 0; i < phases.intervals().size(); ++i) {
    const PhaseInterval& interval = phases.intervals()[i];
    if (!InStep(interval.kind)) continue;
    if (ends.empty() || interval.step != step) ends.emplace_back();
    ends.back() = phases.End(i);
    step = interval.step;
  }
  return ends;
}

std::vector<std::uint64_t> EndsOfEvaluations(const PhaseTimeline& phases) {
  std::vector<std::uint64_t> ends;
  for (std::size_t i = 0; i < phases.intervals().size(); ++i) {
    if (phases.intervals()[i].kind == PhaseKind::kEvaluation) ends.push_back(phases.End(i));
  }
  return ends;
}

// Live blocks and bytes of one place at the end of each watched round.
struct Series {
  std::vector<std::int64_t> blocks, bytes;  // changes until added up
  std::uint64_t last = 0;                   // life

  explicit Series(std::size_t rounds) : blocks(rounds + 1), bytes(rounds + 1) {}

  void Add(std::size_t from, std::size_t to, std::uint64_t size, std::uint64_t life) {
    ++blocks[from];
    --blocks[to];
    bytes[from] += static_cast<std::int64_t>(size);
    bytes[to] -= static_cast<std::int64_t>(size);
    last = life;
  }

  bool GrowsInEveryRound() {
    for (std::size_t i = 1; i + 1 < blocks.size(); ++i) {
      blocks[i] += blocks[i - 1];
      bytes[i] += bytes[i - 1];
      if (blocks[i] <= blocks[i - 1] || bytes[i] <= bytes[i - 1]) return false;
    }
    return true;
  }
};

class Watch {
 public:
  Watch(const Grounds& grounds, const DeviceLives& lives, bool evaluation)
      : grounds_(grounds), lives_(lives), evaluation_(evaluation) {
    const auto ends = evaluation ? EndsOfEvaluations(grounds.phases) : EndsOfSteps(grounds.phases);
    if (ends.size() < kFewestRounds) return;
    // The first rounds make what later ones use again. Of four, three are watched.
    const std::size_t watched = std::max(kFewestRounds - 1, (ends.size() + 1) / 2);
    ends_.assign(ends.end() - static_cast<std::ptrdiff_t>(watched), ends.end());
  }

  void Find(std::vector<Growth>& found) const {
    if (ends_.empty()) return;
    std::map<std::pair<Category, std::string>, Series> places;
    for (std::uint64_t i = 0; i < lives_.lives.size(); ++i) {
      const Life& life = lives_.lives[i];
      if (life.begin_phase == life.end_phase) continue;  // nearly all of them; rounds end where phases do
      const std::size_t from = RoundOf(life.begin), to = RoundOf(life.end);
      if (from == to) continue;  // alive at the end of none
      const auto [place, added] = places.try_emplace({life.category, PlaceOf(life)}, ends_.size());
      place->second.Add(from, to, life.bytes, i);
    }
    for (auto& [place, series] : places) {
      if (series.GrowsInEveryRound()) found.push_back(Describe(place.first, series));
    }
  }

 private:
  // The first round that ends after the slot.
  std::size_t RoundOf(std::uint64_t slot) const {
    return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), slot) - ends_.begin());
  }

  // Not by the op: in later steps ops are not observed.
  std::string PlaceOf(const Life& life) const {
    const std::string name = NameOf(grounds_, lives_, life);
    if (!name.empty()) return name;
    const std::string module = ModuleOf(grounds_, lives_, life);
    return module.empty() ? MemberOf(grounds_, lives_, life) : module;
  }

  Growth Describe(Category category, const Series& series) const {
    const std::size_t last = ends_.size() - 1;
    const Life& latest = lives_.lives[series.last];
    Growth growth;
    growth.category = category;
    growth.member = MemberOf(grounds_, lives_, latest);
    growth.scope = grounds_.file.ScopePath(replay::ScopeOf(grounds_.file.slots()[latest.begin]));
    growth.evaluation = evaluation_;
    growth.rounds = last;
    growth.grown_bytes = static_cast<std::uint64_t>(series.bytes[last] - series.bytes[0]);
    growth.grown_blocks = static_cast<std::uint64_t>(series.blocks[last] - series.blocks[0]);
    growth.live_bytes = static_cast<std::uint64_t>(series.bytes[last]);
    growth.live_blocks = static_cast<std::uint64_t>(series.blocks[last]);
    return growth;
  }

  const Grounds& grounds_;
  const DeviceLives& lives_;
  const bool evaluation_;
  std::vector<std::uint64_t> ends_;  // of the watched rounds
};

}  // namespace

std::vector<Growth> GrowthOf(const Grounds& grounds, const DeviceLives& lives) {
  std::vector<Growth> found;
  for (const bool evaluation : {false, true}) Watch(grounds, lives, evaluation).Find(found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Growth& a, const Growth& b) { return a.grown_bytes > b.grown_bytes; });
  return found;
}

}  // namespace ledger::attribution
