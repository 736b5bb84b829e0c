// A set of addresses that answers which of them is the last one at or below another: which block contains a pointer.
//
// Blocks begin at multiples of 512 bytes. The set is a bit for each such place, 64 to a word, only words with a bit in
// them stored; and above it, level by level, a bit for each word that is stored. Adding and removing touch the next
// level only when a word comes or goes, so that they cost about one look-up, and a question costs at most one look-up a
// level. (An ordered map would cost five times as much for each block, to answer questions that few ledgers ask.)
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"

namespace ledger::attribution {

class AddressIndex {
 public:
  static constexpr std::uint64_t kUnit = 512;

  // Of addresses within one unit, the last one added counts.
  void Add(std::uint64_t address);
  void Remove(std::uint64_t address);

  // The largest member's unit at or below: its first byte. Nothing when there is none.
  std::optional<std::uint64_t> AtOrBelow(std::uint64_t address) const;

  void Clear();

 private:
  static constexpr unsigned kUnitBits = 9, kWordBits = 6;
  static constexpr unsigned kLevels = 10;  // 9 + 10 * 6 bits reach beyond every address

  static std::uint64_t Key(std::uint64_t address, unsigned level);
  static std::uint64_t Bit(std::uint64_t address, unsigned level);

  std::array<absl::flat_hash_map<std::uint64_t, std::uint64_t>, kLevels> words_;
};

}  // namespace ledger::attribution
