#include "ledger/attribution/address_index.h"

#include <bit>

namespace ledger::attribution {
namespace {

constexpr std::uint64_t kWordMask = 63;

}  // namespace

// The number of a word on its level, and of the bit in it. The highest levels see no more than zero.
std::uint64_t AddressIndex::Key(std::uint64_t address, unsigned level) {
  const unsigned shift = kUnitBits + kWordBits * (level + 1);
  return shift < 64 ? address >> shift : 0;
}

std::uint64_t AddressIndex::Bit(std::uint64_t address, unsigned level) {
  const unsigned shift = kUnitBits + kWordBits * level;
  return shift < 64 ? (address >> shift) & kWordMask : 0;
}

void AddressIndex::Add(std::uint64_t address) {
  for (unsigned level = 0; level < kLevels; ++level) {
    std::uint64_t& word = words_[level][Key(address, level)];
    const bool stored = word != 0;
    word |= std::uint64_t{1} << Bit(address, level);
    if (stored) return;
  }
}

void AddressIndex::Remove(std::uint64_t address) {
  for (unsigned level = 0; level < kLevels; ++level) {
    const auto entry = words_[level].find(Key(address, level));
    if (entry == words_[level].end()) return;
    entry->second &= ~(std::uint64_t{1} << Bit(address, level));
    if (entry->second != 0) return;
    words_[level].erase(entry);
  }
}

std::optional<std::uint64_t> AddressIndex::AtOrBelow(std::uint64_t address) const {
  // Upwards until a word has a bit at or below; a place that is inside of what was asked for counts on the first level
  // only, since its own bits were looked at already.
  for (unsigned level = 0; level < kLevels; ++level) {
    const auto entry = words_[level].find(Key(address, level));
    if (entry == words_[level].end()) continue;
    const std::uint64_t bit = Bit(address, level);
    const std::uint64_t above = (level == 0 ? std::uint64_t{2} : std::uint64_t{1}) << bit;  // 0 behind the last bit
    const std::uint64_t below = entry->second & (above - 1);
    if (below == 0) continue;
    // Downwards along the highest bits.
    std::uint64_t place = Key(address, level) << kWordBits | (63 - static_cast<unsigned>(std::countl_zero(below)));
    for (unsigned down = level; down-- > 0;) {
      const std::uint64_t word = words_[down].at(place);
      place = place << kWordBits | (63 - static_cast<unsigned>(std::countl_zero(word)));
    }
    return place << kUnitBits;
  }
  return std::nullopt;
}

void AddressIndex::Clear() {
  for (auto& level : words_) level.clear();
}

}  // namespace ledger::attribution
