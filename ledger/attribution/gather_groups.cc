#include "ledger/attribution/gather_groups.h"

#include "absl/strings/string_view.h"
#include "ledger/attribution/describe_life.h"
#include "ledger/attribution/sharding_range.h"
#include "ledger/replay/record_fields.h"

namespace ledger::attribution {
namespace {

std::string Parent(absl::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == absl::string_view::npos ? "" : std::string(name.substr(0, dot));
}

}  // namespace

bool IsGathered(const Life& life) {
  return life.category == Category::kCommBuffer &&
         (life.role == Role::kGatheredParameter || life.role == Role::kAllGatherOutput);
}

GatherGroups::GatherGroups(const Grounds& grounds, const DeviceLives& lives) : grounds_(grounds), lives_(lives) {
  NameRanges();
  NameSenders();
  NameLives();
  FindUses();
}

std::uint32_t GatherGroups::Named(const std::string& name, bool told) {
  const auto [entry, added] = by_name_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
  if (added) {
    names_.push_back(name);
    told_.push_back(false);
  }
  if (told) told_[entry->second] = true;
  return entry->second;
}

void GatherGroups::NameRanges() {
  const auto nodes = grounds_.file.scopes().nodes();
  of_range_.assign(nodes.size(), kNoGroup);
  for (std::uint32_t id = 1; id < nodes.size(); ++id) {
    if (!nodes[id].defined) continue;
    of_range_[id] = of_range_[nodes[id].parent];
    if ((nodes[id].flags & record::kScopeUser) == 0) continue;
    const auto range = ReadShardingRange(grounds_.file.Text(nodes[id].name));
    if (range && range->module) of_range_[id] = Named(*range->module, /*told=*/true);
  }
}

// The buffers of a call follow each other, the one that is sent first.
void GatherGroups::NameSenders() {
  for (std::size_t i = 1; i < lives_.mentions.size(); ++i) {
    const Mention &sent = lives_.mentions[i - 1], &received = lives_.mentions[i];
    if (sent.slot != received.slot || sent.facts == 0 || received.facts == 0) continue;
    const format::Slot& slot = grounds_.file.slots()[sent.slot];
    if (slot.kind() != record::Kind::kCollective ||
        slot.As<record::Collective>().operation != record::Operation::kAllGather) {
      continue;
    }
    const std::uint64_t name = lives_.facts[sent.facts].name;
    if (name == kNever) continue;
    const auto& record = grounds_.file.slots()[name].As<record::Name>();
    if (record.category != record::NameCategory::kParameter) continue;
    of_output_[received.facts] = Named(Parent(grounds_.file.Text(record.text)), /*told=*/true);
  }
}

void GatherGroups::NameLives() {
  of_life_.assign(lives_.lives.size(), kNoGroup);
  for (std::uint64_t i = 0; i < lives_.lives.size(); ++i) {
    const Life& life = lives_.lives[i];
    if (!IsGathered(life)) continue;
    const std::uint32_t scope = replay::ScopeOf(grounds_.file.slots()[life.begin]);
    if (scope < of_range_.size() && of_range_[scope] != kNoGroup) {
      of_life_[i] = of_range_[scope];
    } else if (const auto output = of_output_.find(life.facts); output != of_output_.end()) {
      of_life_[i] = output->second;
    } else {
      const std::string name = NameOf(grounds_, lives_, life);
      of_life_[i] = Named(name.empty() ? MemberOf(grounds_, lives_, life) : Parent(name), /*told=*/false);
    }
  }
}

void GatherGroups::FindUses() {
  const auto nodes = grounds_.file.scopes().nodes();
  of_scope_.assign(nodes.size(), kNoGroup);
  runs_.assign(names_.size(), false);
  absl::flat_hash_map<std::uint32_t, std::uint32_t> of_module;  // by the module's scope
  for (std::uint32_t id = 1; id < nodes.size(); ++id) {
    const std::uint32_t module = grounds_.scopes.Get(id).module;
    if (module == 0) continue;
    const auto [entry, added] = of_module.try_emplace(module, kNoGroup);
    if (added) {
      for (std::string name = grounds_.file.Text(nodes[module].name); !name.empty(); name = Parent(name)) {
        const auto group = by_name_.find(name);
        if (group == by_name_.end()) continue;
        entry->second = group->second;
        break;
      }
    }
    of_scope_[id] = entry->second;
    if (entry->second != kNoGroup) runs_[entry->second] = true;
  }
}

}  // namespace ledger::attribution
