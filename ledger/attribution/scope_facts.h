// What the scopes of a ledger say about a block that was allocated in one: looked up once for each scope, not for each
// block.
#pragma once

#include <cstdint>
#include <vector>

#include "ledger/attribution/sharding_range.h"
#include "ledger/format/ledger_file.h"

namespace ledger::attribution {

// Of a scope and everything around it. Ids of scopes; 0: none.
struct ScopeFacts {
  std::uint32_t module = 0;    // innermost module; that of the forward, for what a backward node does
  std::uint32_t op = 0;        // innermost op or backward node
  std::uint32_t backward = 0;  // innermost backward node
  std::uint32_t range = 0;     // innermost range of the framework's profiler
  bool recompute = false;      // a forward that runs again inside backward
  bool optimizer = false;      // inside an optimizer's step or zero_grad
  Sharding sharding = Sharding::kNone;
  std::uint16_t depth = 0;
};

class ScopeFactsTable {
 public:
  explicit ScopeFactsTable(const format::LedgerFile& file);

  // The root's for a scope that was never defined.
  const ScopeFacts& Get(std::uint32_t scope) const { return facts_[scope < facts_.size() ? scope : 0]; }

  // Did the op adapter see backward nodes? Without it, what is in no node says nothing.
  bool nodes_observed() const { return nodes_observed_; }

  // Is `scope` the ancestor, or inside of it?
  bool Inside(std::uint32_t scope, std::uint32_t ancestor) const;

 private:
  const format::ScopeTable& scopes_;
  std::vector<ScopeFacts> facts_;  // by id
  bool nodes_observed_ = false;
};

}  // namespace ledger::attribution
