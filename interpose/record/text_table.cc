#include "interpose/record/text_table.h"

#include <sys/mman.h>

#include <cstring>
#include <iterator>

namespace ledger {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

// Zero-filled, and backed by memory only where it is touched.
void* MapTable(std::uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

std::uint64_t Mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 32);
}

std::uint32_t Fold(std::uint64_t hash) { return static_cast<std::uint32_t>(hash ^ (hash >> 29)); }

}  // namespace

void HashIndex::Put(const Words& words, std::uint64_t word) {
  std::uint32_t at = static_cast<std::uint32_t>(word >> 32) & words.mask;
  while (words.at[at].load(std::memory_order_relaxed) != 0) at = (at + 1) & words.mask;
  words.at[at].store(word, std::memory_order_release);
}

bool HashIndex::Reserve() {
  const Words* const old = words_.load(std::memory_order_relaxed);
  if (old != nullptr && entries_ < (old->mask + 1) / 2) return true;
  Words* const words = old == nullptr ? generations_ : generations_ + (old - generations_) + 1;
  if (words == std::end(generations_)) return false;
  const std::uint32_t count = 1u << (kFirstLog2 + static_cast<std::uint32_t>(words - generations_));
  void* const memory = MapTable(count * sizeof(std::uint64_t));
  if (memory == nullptr) return false;
  *words = {static_cast<std::atomic<std::uint64_t>*>(memory), count - 1};
  for (std::uint32_t at = 0; old != nullptr && at <= old->mask; ++at) {
    if (const std::uint64_t word = old->at[at].load(std::memory_order_relaxed); word != 0) Put(*words, word);
  }
  words_.store(words, std::memory_order_release);
  return true;
}

void HashIndex::Publish(std::uint32_t hash, std::uint32_t id) {
  Put(*words_.load(std::memory_order_relaxed), static_cast<std::uint64_t>(hash) << 32 | id);
  ++entries_;
}

std::uint64_t HashIndex::resident_bytes() const {
  std::uint64_t bytes = 0;
  const Words* const latest = words_.load(std::memory_order_acquire);
  for (const Words* words = generations_; latest != nullptr && words <= latest; ++words) {
    bytes += (words->mask + std::uint64_t{1}) * sizeof(std::uint64_t);
  }
  return bytes;
}

std::string_view TextTable::Shorten(std::string_view text, char* buffer) {
  if (text.size() <= record::kMaxTextBytes) return text;
  constexpr std::string_view kEllipsis = "...";
  std::size_t kept = record::kMaxTextBytes - kEllipsis.size();
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) --kept;
  std::memcpy(buffer, text.data(), kept);
  std::memcpy(buffer + kept, kEllipsis.data(), kEllipsis.size());
  return std::string_view(buffer, kept + kEllipsis.size());
}

std::uint32_t TextTable::Hash(std::string_view text) {
  std::uint64_t hash = text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t), at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof(word));
    hash = Mix(hash, word);
  }
  if (left > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, left);
    hash = Mix(hash, word);
  }
  return Fold(hash);
}

bool TextTable::Map() {
  if (mapped_.load(std::memory_order_relaxed)) return true;
  constexpr std::uint64_t kEntriesBytes = sizeof(Entry) << kCapacityLog2;
  char* const memory = static_cast<char*>(MapTable(kEntriesBytes + kArenaBytes));
  if (memory == nullptr) return false;
  entries_ = reinterpret_cast<Entry*>(memory);
  arena_ = memory + kEntriesBytes;
  mapped_.store(true, std::memory_order_release);
  return true;
}

std::uint32_t TextTable::Find(std::string_view text, std::uint32_t hash) const {
  if (text.empty() || !mapped_.load(std::memory_order_acquire)) return 0;
  return index_.Find(hash, [&](std::uint32_t id) { return Text(id) == text; });
}

std::uint32_t TextTable::Add(std::string_view text) {
  const std::uint32_t id = count_.load(std::memory_order_relaxed) + 1;
  if (!Map() || id >= (1u << kCapacityLog2) || text.size() > kArenaBytes - arena_used_ || !index_.Reserve()) return 0;
  std::memcpy(arena_ + arena_used_, text.data(), text.size());
  entries_[id] = Entry{arena_used_, static_cast<std::uint32_t>(text.size())};
  return id;
}

void TextTable::Publish(std::uint32_t id, std::uint32_t hash) {
  arena_used_ += entries_[id].bytes;
  count_.store(id, std::memory_order_release);
  index_.Publish(hash, id);
}

std::string_view TextTable::Text(std::uint32_t id) const {
  if (id == 0) return {};
  return std::string_view(arena_ + entries_[id].offset, entries_[id].bytes);
}

std::uint64_t TextTable::resident_bytes() const {
  const std::uint64_t entries = count();
  return entries == 0 ? 0 : index_.resident_bytes() + entries * sizeof(Entry) + arena_used_ + 2 * kPageBytes;
}

std::uint32_t ScopeTable::Hash(const ScopeNode& node) {
  std::uint64_t hash =
      Mix(static_cast<std::uint64_t>(node.source), static_cast<std::uint64_t>(node.parent) << 32 | node.name);
  hash = Mix(hash, static_cast<std::uint64_t>(node.flags) << 32 | node.domain);
  return Fold(Mix(hash, node.origin));
}

bool ScopeTable::Map() {
  if (mapped_.load(std::memory_order_relaxed)) return true;
  void* const memory = MapTable(sizeof(ScopeNode) << kCapacityLog2);
  if (memory == nullptr) return false;
  nodes_ = static_cast<ScopeNode*>(memory);
  mapped_.store(true, std::memory_order_release);
  return true;
}

std::uint32_t ScopeTable::Find(const ScopeNode& node, std::uint32_t hash) const {
  if (!mapped_.load(std::memory_order_acquire)) return 0;
  return index_.Find(hash, [&](std::uint32_t id) { return nodes_[id] == node; });
}

std::uint32_t ScopeTable::Add(const ScopeNode& node) {
  const std::uint32_t id = count_.load(std::memory_order_relaxed) + 1;
  if (!Map() || id >= (1u << kCapacityLog2) || !index_.Reserve()) return 0;
  nodes_[id] = node;
  return id;
}

void ScopeTable::Publish(std::uint32_t id, std::uint32_t hash) {
  count_.store(id, std::memory_order_release);
  index_.Publish(hash, id);
}

std::uint64_t ScopeTable::resident_bytes() const {
  const std::uint64_t entries = count();
  return entries == 0 ? 0 : index_.resident_bytes() + entries * sizeof(ScopeNode) + kPageBytes;
}

}  // namespace ledger
