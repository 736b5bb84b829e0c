#include "ledger/attribution/address_index.h"

#include <catch2/catch.hpp>
#include <iterator>
#include <random>
#include <set>

namespace ledger::attribution {
namespace {

constexpr std::uint64_t kUnit = AddressIndex::kUnit;

TEST_CASE("an empty index has nothing below anything") {
  AddressIndex index;
  CHECK_FALSE(index.AtOrBelow(0));
  CHECK_FALSE(index.AtOrBelow(~std::uint64_t{0}));
  index.Remove(kUnit);
  CHECK_FALSE(index.AtOrBelow(~std::uint64_t{0}));
}

TEST_CASE("the ends of the address space are places like others") {
  AddressIndex index;
  const std::uint64_t last = ~std::uint64_t{0} / kUnit * kUnit;
  index.Add(0);
  index.Add(last);
  CHECK(index.AtOrBelow(0) == 0);
  CHECK(index.AtOrBelow(last - 1) == 0);
  CHECK(index.AtOrBelow(~std::uint64_t{0}) == last);
  index.Remove(last);
  CHECK(index.AtOrBelow(~std::uint64_t{0}) == 0);
  index.Clear();
  CHECK_FALSE(index.AtOrBelow(~std::uint64_t{0}));
}

TEST_CASE("it answers as an ordered set does") {
  std::mt19937_64 random(7);
  for (const unsigned bits : {14u, 24u, 40u, 63u}) {
    AddressIndex index;
    std::set<std::uint64_t> set;
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    for (int i = 0; i < 4000; ++i) {
      const std::uint64_t address = (random() & mask) / kUnit * kUnit;
      if (random() % 3 != 0) {
        index.Add(address);
        set.insert(address);
      } else if (!set.empty()) {
        const auto victim = set.lower_bound(address) == set.end() ? set.begin() : set.lower_bound(address);
        index.Remove(*victim);
        set.erase(victim);
      }
      const std::uint64_t asked = random() & mask;
      const auto above = set.upper_bound(asked);
      const auto answer = index.AtOrBelow(asked);
      REQUIRE(answer.has_value() == (above != set.begin()));
      if (answer) REQUIRE(*answer == *std::prev(above));
    }
  }
}

}  // namespace
}  // namespace ledger::attribution
