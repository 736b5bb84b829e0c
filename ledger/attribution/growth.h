// What a program keeps more of with every step: leaks, and lists of results that are never cleared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/attribution/classify.h"
#include "ledger/attribution/lives.h"

namespace ledger::attribution {

// Blocks of one category, and of one name, or else module, or else place, whose number grew in each of the last rounds.
struct Growth {
  Category category = Category::kUnknown;
  std::string member;                               // as a report groups members of a category
  std::string scope;                                // of the last of them
  bool evaluation = false;                          // a round is a forward without gradients, rather than a step
  std::uint64_t rounds = 0;                         // over which it was watched: the later half of all
  std::uint64_t grown_bytes = 0, grown_blocks = 0;  // in these
  std::uint64_t live_bytes = 0, live_blocks = 0;    // after the last one
};

// Fewer rounds than this say nothing.
inline constexpr std::size_t kFewestRounds = 4;

// Largest growth first.
std::vector<Growth> GrowthOf(const Grounds& grounds, const DeviceLives& lives);

}  // namespace ledger::attribution
