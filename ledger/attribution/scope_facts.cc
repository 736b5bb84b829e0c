#include "ledger/attribution/scope_facts.h"

#include <limits>

namespace ledger::attribution {
namespace {

using format::ScopeNode;

ScopeFacts Inherit(const ScopeFacts& parent) {
  ScopeFacts facts = parent;
  if (facts.depth != std::numeric_limits<std::uint16_t>::max()) ++facts.depth;
  return facts;
}

}  // namespace

ScopeFactsTable::ScopeFactsTable(const format::LedgerFile& file)
    : scopes_(file.scopes()), facts_(scopes_.nodes().size()) {
  for (std::uint32_t id = 1; id < facts_.size(); ++id) {
    const ScopeNode& node = scopes_.Get(id);
    if (!node.defined) continue;
    ScopeFacts facts = Inherit(facts_[node.parent]);
    facts.recompute |= (node.flags & record::kScopeRecompute) != 0;
    facts.optimizer |= (node.flags & record::kScopeOptimizer) != 0;
    if ((node.flags & record::kScopeModule) != 0) {
      facts.module = id;
    } else if ((node.flags & record::kScopeUser) != 0) {
      facts.range = id;
      const auto range = ReadShardingRange(file.Text(node.name));
      if (range && range->work != Sharding::kNone) facts.sharding = range->work;
    } else if (node.source == record::Layer::kOp) {
      facts.op = id;
    }
    if ((node.flags & record::kScopeBackward) != 0) {
      facts.backward = id;
      nodes_observed_ = true;
      if (node.origin != 0) facts.module = facts_[node.origin].module;
    }
    facts_[id] = facts;
  }
}

bool ScopeFactsTable::Inside(std::uint32_t scope, std::uint32_t ancestor) const {
  const std::uint16_t depth = Get(ancestor).depth;
  while (scope != ancestor) {
    if (scope == 0 || Get(scope).depth <= depth) return false;
    scope = scopes_.Get(scope).parent;
  }
  return true;
}

}  // namespace ledger::attribution
