// Who held it: the lives of all blocks of a ledger with their categories, and the bytes of each category over time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ledger/attribution/classify.h"
#include "ledger/attribution/lives.h"
#include "ledger/attribution/phase_timeline.h"
#include "ledger/attribution/scope_facts.h"
#include "ledger/attribution/timeline.h"
#include "ledger/format/ledger_file.h"
#include "ledger/replay/analysis.h"

namespace ledger::attribution {

class Attribution {
 public:
  // `file` must outlive it. Memory is about 30 bytes for each event of a block.
  Attribution(const format::LedgerFile& file, const std::vector<replay::DeviceAnalysis>& devices);

  const PhaseTimeline& phases() const { return phases_; }
  const ScopeFactsTable& scopes() const { return scopes_; }
  Grounds grounds() const { return {file_, scopes_, phases_}; }

  // Null for a device on which nothing was allocated.
  const DeviceLives* lives(std::int8_t device) const { return collector_.device(device); }
  const CategoryTimeline* timeline(std::int8_t device) const;

  // Indices of the lives at that instant, right after the event; by the order of allocation.
  std::vector<std::uint64_t> AliveAt(std::int8_t device, std::uint64_t slot) const;

  // What was said about addresses at which nothing was alive.
  const Unplaced& unplaced() const { return collector_.unplaced(); }

 private:
  const format::LedgerFile& file_;
  ScopeFactsTable scopes_;
  PhaseTimeline phases_;
  LifeCollector collector_;
  std::vector<std::pair<std::int8_t, CategoryTimeline>> timelines_;
};

}  // namespace ledger::attribution
