// The phases of a process: setup, and then steps of forward, backward, optimizer and what lies between.
//
// The agent tells them. Where it did not, they are inferred: backward runs on threads of its own, or in backward nodes
// where the op adapter saw them; an optimizer's step shows by its range, or by the gradients that are given back after
// a backward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ledger/attribution/scope_facts.h"
#include "ledger/format/ledger_file.h"

namespace ledger::attribution {

struct PhaseInterval {
  std::uint64_t from = 0;  // slot; lasts until the next interval
  record::PhaseKind kind = record::PhaseKind::kSetup;
  std::uint64_t step = 0;
};

inline constexpr std::uint32_t kNoPhase = std::numeric_limits<std::uint32_t>::max();

class PhaseTimeline {
 public:
  // As the agent told them; inferred where it told none. Never empty, the first one begins at slot 0.
  PhaseTimeline(const format::LedgerFile& file, const ScopeFactsTable& scopes);

  const std::vector<PhaseInterval>& intervals() const { return intervals_; }
  bool inferred() const { return inferred_; }
  // The end of an interval, a slot; that of the ledger for the last one.
  std::uint64_t End(std::size_t index) const;
  std::size_t IndexAt(std::uint64_t slot) const;
  // The first backward from this interval on, itself included; kNoPhase: none.
  std::uint32_t BackwardFrom(std::size_t index) const { return next_backward_[index]; }
  // "step 3 backward", "setup".
  std::string Name(std::size_t index) const;

 private:
  std::vector<PhaseInterval> intervals_;
  std::vector<std::uint32_t> next_backward_;  // by interval
  std::uint64_t slots_;
  bool inferred_ = false;
};

// Has work of a step in it, and so a number of that step.
bool InStep(record::PhaseKind kind);

}  // namespace ledger::attribution
