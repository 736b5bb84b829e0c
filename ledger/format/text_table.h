// The interned texts of one ledger, put together from their chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "interpose/record/record.h"

namespace ledger::format {

class TextTable {
 public:
  // Ids are given out one by one and a text takes a slot at least: a larger id than there are slots is a lie, and must
  // not make the reader reserve memory for it.
  explicit TextTable(std::size_t slots) : max_id_(slots) {}

  // False when the chunk contradicts the format. Chunks of one text may lie apart, in any order.
  bool Add(const record::TextChunk& chunk);

  // The text; "" for id 0, "<text N>" for one that is not (wholly) there.
  std::string Get(std::uint32_t id) const;

  // The largest id seen, and the number of texts of which a chunk is missing.
  std::uint32_t max_id() const { return static_cast<std::uint32_t>(texts_.empty() ? 0 : texts_.size() - 1); }
  std::size_t CountIncomplete() const;

 private:
  struct Text {
    std::string bytes;
    std::uint32_t chunks_seen = 0;  // bit i: chunk i
    bool defined = false;
  };
  static bool Complete(const Text& text);

  std::size_t max_id_;
  std::vector<Text> texts_;  // by id
};

}  // namespace ledger::format
