// A reader of ledger files for tests of the recorder: it knows the record layout and nothing of the reader in ledger/,
// so that a mistake in that one can't hide a mistake in the recorder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "interpose/record/record.h"

namespace ledger::testing {

class Ledger {
 public:
  explicit Ledger(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    if (bytes.size() < record::kHeaderBytes) throw std::runtime_error(path.string() + ": shorter than its header");
    std::memcpy(&header_, bytes.data(), sizeof(header_));
    if (std::memcmp(header_.magic, record::kMagic, sizeof(record::kMagic)) != 0) {
      throw std::runtime_error(path.string() + ": no ledger");
    }
    const std::size_t present = (bytes.size() - record::kHeaderBytes) / record::kRecordBytes;
    for (std::size_t i = 0; i < std::min<std::size_t>(present, header_.reserved); ++i) {
      Slot slot;
      std::memcpy(&slot, bytes.data() + record::kHeaderBytes + i * record::kRecordBytes, sizeof(slot));
      slots_.push_back(slot);
      if (Is(slot, record::Kind::kText)) AddText(As<record::TextChunk>(slot));
      if (Is(slot, record::Kind::kScope))
        scopes_[As<record::ScopeDefinition>(slot).id] = As<record::ScopeDefinition>(slot);
    }
  }

  const record::FileHeader& header() const { return header_; }
  std::uint64_t losses(record::Loss reason) const { return header_.losses[static_cast<std::size_t>(reason)]; }

  // All records of a kind, in their order.
  template <typename Layout>
  std::vector<Layout> All(record::Kind kind) const {
    std::vector<Layout> found;
    for (const Slot& slot : slots_) {
      if (Is(slot, kind)) found.push_back(As<Layout>(slot));
    }
    return found;
  }

  // All records of several kinds of one layout, in their order.
  template <typename Layout>
  std::vector<Layout> InOrder(const std::vector<record::Kind>& kinds) const {
    std::vector<Layout> found;
    for (const Slot& slot : slots_) {
      if (std::any_of(kinds.begin(), kinds.end(), [&](record::Kind kind) { return Is(slot, kind); })) {
        found.push_back(As<Layout>(slot));
      }
    }
    return found;
  }

  // The kinds of all records, in their order.
  std::vector<record::Kind> Kinds() const {
    std::vector<record::Kind> kinds;
    for (const Slot& slot : slots_) kinds.push_back(static_cast<record::Kind>(slot.commit.kind));
    return kinds;
  }

  std::string Text(std::uint32_t id) const { return id == 0 ? std::string() : texts_.at(id); }

  // "outer/inner"; a scope of an NVTX domain as "domain:name".
  std::string Path(std::uint32_t scope) const {
    if (scope == 0) return {};
    const record::ScopeDefinition& node = scopes_.at(scope);
    const std::string above = Path(node.parent);
    const std::string domain = Text(node.domain);
    return above + (above.empty() ? "" : "/") + domain + (domain.empty() ? "" : ":") + Text(node.name);
  }

 private:
  struct Slot {
    record::Commit commit;
    char rest[record::kRecordBytes - sizeof(record::Commit)];
  };
  static bool Is(const Slot& slot, record::Kind kind) { return slot.commit.kind == static_cast<std::uint16_t>(kind); }
  template <typename Layout>
  static Layout As(const Slot& slot) {
    Layout layout;
    std::memcpy(&layout, &slot, sizeof(layout));
    return layout;
  }
  void AddText(const record::TextChunk& chunk) {
    const std::size_t begin = std::size_t{chunk.chunk} * record::kTextChunkBytes;
    const std::size_t bytes = std::min<std::size_t>(record::kTextChunkBytes, chunk.total_bytes - begin);
    texts_[chunk.id].append(chunk.bytes, bytes);
  }

  record::FileHeader header_;
  std::vector<Slot> slots_;
  std::map<std::uint32_t, std::string> texts_;
  std::map<std::uint32_t, record::ScopeDefinition> scopes_;
};

}  // namespace ledger::testing
