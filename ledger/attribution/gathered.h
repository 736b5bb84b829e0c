// What sharding adds for moments: parameters that are whole, those gathered ahead of their use, and what waits to be
// reduced. docs/communication.md has the definitions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/attribution/classify.h"
#include "ledger/attribution/lives.h"

namespace ledger::attribution {

// Bytes alive right after one event.
struct TransientUse {
  std::uint64_t slot = kNever;       // kNever: there never were any
  std::uint64_t whole = 0;           // parameters that were made whole, of modules that run
  std::uint64_t outputs = 0;         // of all-gathers of such modules, from which those are copied
  std::uint64_t ahead = 0;           // both, of modules that have not begun to run since they were gathered
  std::uint64_t reduce_scatter = 0;  // inputs of reduce-scatters
  std::uint64_t other_buffers = 0;   // of collectives
  std::uint64_t workspace = 0;

  std::uint64_t InUse() const { return whole + outputs; }
  std::uint64_t Gathered() const { return InUse() + ahead; }
  std::uint64_t Total() const { return Gathered() + reduce_scatter + other_buffers + workspace; }
};

// Parameters that are gathered together: those of one sharded module.
struct GatheredGroup {
  std::string name;  // its module; "" for the root
  std::uint64_t bytes = 0, blocks = 0;
  bool ahead = false;
};

// Gathered parameters that outlive the work they were gathered for.
struct HeldGathered {
  std::string name;
  std::uint64_t bytes = 0, blocks = 0;
  std::uint64_t since = kNever, until = kNever;  // slots; kNever: to the end of the ledger
  std::uint64_t steps = 0, forwards = 0;         // that began meanwhile
};

struct GatheredState {
  TransientUse largest;     // by the gathered bytes
  TransientUse most_ahead;  // by those that were gathered ahead
  TransientUse transient;   // by all of them together
  std::uint64_t largest_reduce_scatter = 0;
  std::vector<GatheredGroup> groups;  // at `largest`, largest first
  std::vector<HeldGathered> held;     // largest first
};

GatheredState GatheredOf(const Grounds& grounds, const DeviceLives& lives);

}  // namespace ledger::attribution
