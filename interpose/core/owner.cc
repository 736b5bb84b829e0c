// Which library called: a return address's page → interned base name, found without a lock after the first time.
// A library that is unloaded and replaced by another one at the same addresses keeps the first one's name.
#include <atomic>
#include <cstdint>

#include "interpose/core/definitions.h"
#include "interpose/core/memory_map.h"
#include "interpose/core/recorder.h"
#include "interpose/record/spin_lock.h"

namespace ledger {
namespace {

constexpr std::uint32_t kPageShift = 12;
constexpr std::uint32_t kCacheLog2 = 12;
constexpr std::uint32_t kProbes = 16;
constexpr std::uint32_t kIdBits = 20;  // of a text's id; the page number takes the other 44 bits

// {page number, text id} in one word: found and read by one load.
constinit std::atomic<std::uint64_t> g_cache[1u << kCacheLog2] = {};

std::uint32_t CacheStart(std::uint64_t page) {
  return static_cast<std::uint32_t>((page * 0x9E3779B97F4A7C15u) >> (64 - kCacheLog2));
}

struct Search {
  std::uintptr_t address;
  std::uint32_t owner;
};

bool NameMapping(const Mapping& mapping, void* context) {
  auto* const search = static_cast<Search*>(context);
  if (search->address < mapping.begin || search->address >= mapping.end) return true;
  search->owner = InternAlways(mapping.path.empty() ? std::string_view("[generated code]") : BaseName(mapping.path));
  return false;
}

[[gnu::cold, gnu::noinline]] std::uint32_t FindOwner(std::uintptr_t address) {
  ErrnoSaver errno_saver;
  Search search = {address, 0};
  VisitMappings(NameMapping, &search);
  if (search.owner == 0 || search.owner >> kIdBits != 0) return search.owner;
  const std::uint64_t page = address >> kPageShift;
  const std::uint32_t start = CacheStart(page);
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    std::uint64_t expected = 0;
    std::atomic<std::uint64_t>& word = g_cache[(start + probe) % (1u << kCacheLog2)];
    if (word.compare_exchange_strong(expected, page << kIdBits | search.owner, std::memory_order_release)) break;
    if (expected >> kIdBits == page) break;
  }
  return search.owner;
}

}  // namespace

std::uint32_t OwnerOf(const void* return_address) {
  const auto address = reinterpret_cast<std::uintptr_t>(return_address);
  const std::uint64_t page = address >> kPageShift;
  const std::uint32_t start = CacheStart(page);
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    const std::uint64_t word = g_cache[(start + probe) % (1u << kCacheLog2)].load(std::memory_order_acquire);
    if (word == 0) break;
    if (word >> kIdBits == page) return static_cast<std::uint32_t>(word & ((1u << kIdBits) - 1));
  }
  return FindOwner(address);
}

}  // namespace ledger
