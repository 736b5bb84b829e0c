// Interned texts and scopes: fixed-capacity tables with lock-free lookup, in address space that costs memory only as
// far as it is used. They know nothing of the file; core/definitions.cc writes what they hold.
//
// One writer at a time (the caller's lock) adds an entry, writes its definition to the ledger, and publishes it; only
// then can a lookup find it. So no record refers to a definition that stands behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "interpose/record/record.h"

namespace ledger {

// Open addressing over words of {hash, id}; the entries lie elsewhere. It grows with what it holds, to be no larger
// than it must: lookups come from all over it, a training step makes a thousand of them, and each page of it takes a
// place in the processor's small table of addresses from the program. What it has outgrown is kept, since others may be
// reading it; together these are smaller than what took their place.
class HashIndex {
 public:
  static constexpr std::uint32_t kEntriesLog2 = 18;

  template <typename Equals>  // bool(std::uint32_t id)
  std::uint32_t Find(std::uint32_t hash, Equals equals) const {
    const Words* const words = words_.load(std::memory_order_acquire);
    if (words == nullptr) return 0;
    for (std::uint32_t at = hash & words->mask;; at = (at + 1) & words->mask) {
      const std::uint64_t word = words->at[at].load(std::memory_order_acquire);
      if (word == 0) return 0;
      if (static_cast<std::uint32_t>(word >> 32) == hash && equals(static_cast<std::uint32_t>(word))) {
        return static_cast<std::uint32_t>(word);
      }
    }
  }

  // Makes room for one more entry than there are; half of the words stay free. False: there is no memory.
  bool Reserve();
  // Into the room that was made.
  void Publish(std::uint32_t hash, std::uint32_t id);
  std::uint64_t resident_bytes() const;

 private:
  struct Words {
    std::atomic<std::uint64_t>* at;
    std::uint32_t mask;
  };
  static constexpr std::uint32_t kFirstLog2 = 9;  // a page of words
  static constexpr std::uint32_t kLastLog2 = kEntriesLog2 + 1;
  static void Put(const Words& words, std::uint64_t word);

  Words generations_[kLastLog2 - kFirstLog2 + 1] = {};
  std::atomic<const Words*> words_{nullptr};  // the latest of them
  std::uint32_t entries_ = 0;
};

class TextTable {
 public:
  static constexpr std::uint32_t kCapacityLog2 = HashIndex::kEntriesLog2;
  static constexpr std::uint32_t kArenaBytes = 32u << 20;

  // Cuts what is longer than record::kMaxTextBytes, between UTF-8 characters, and ends it in "...". `buffer` has room
  // for record::kMaxTextBytes; the result lies there or is `text` itself.
  static std::string_view Shorten(std::string_view text, char* buffer);
  static std::uint32_t Hash(std::string_view text);

  // 0: not there (or the empty text).
  std::uint32_t Find(std::string_view text, std::uint32_t hash) const;

  // An unpublished entry; 0 when there is no room.
  std::uint32_t Add(std::string_view text);
  void Publish(std::uint32_t id, std::uint32_t hash);

  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  std::string_view Text(std::uint32_t id) const;
  std::uint64_t resident_bytes() const;

 private:
  struct Entry {
    std::uint32_t offset;
    std::uint32_t bytes;
  };
  bool Map();

  std::atomic<bool> mapped_{false};
  HashIndex index_;
  Entry* entries_ = nullptr;
  char* arena_ = nullptr;
  std::uint32_t arena_used_ = 0;
  std::atomic<std::uint32_t> count_{0};
};
static_assert(std::is_trivially_destructible_v<TextTable>);

struct ScopeNode {
  std::uint32_t parent;
  std::uint32_t name;    // text
  std::uint32_t domain;  // text
  std::uint16_t depth;   // below the root: 1
  record::Layer source;
  std::uint8_t flags;        // record::kScope...
  std::uint32_t origin = 0;  // of a backward node: the scope of its forward

  bool operator==(const ScopeNode& other) const {
    return parent == other.parent && name == other.name && domain == other.domain && source == other.source &&
           flags == other.flags && origin == other.origin;
  }
};
static_assert(sizeof(ScopeNode) == 20);

class ScopeTable {
 public:
  static constexpr std::uint32_t kCapacityLog2 = HashIndex::kEntriesLog2;

  static std::uint32_t Hash(const ScopeNode& node);
  std::uint32_t Find(const ScopeNode& node, std::uint32_t hash) const;
  std::uint32_t Add(const ScopeNode& node);
  void Publish(std::uint32_t id, std::uint32_t hash);

  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }
  // The root is node 0, with parent 0 and depth 0.
  ScopeNode Node(std::uint32_t id) const { return id == 0 ? ScopeNode{} : nodes_[id]; }
  std::uint64_t resident_bytes() const;

 private:
  bool Map();

  std::atomic<bool> mapped_{false};
  HashIndex index_;
  ScopeNode* nodes_ = nullptr;
  std::atomic<std::uint32_t> count_{0};
};
static_assert(std::is_trivially_destructible_v<ScopeTable>);

}  // namespace ledger
