// The trie of scopes of one ledger: NVTX ranges, module paths and ranges of the public API alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "interpose/record/record.h"
#include "ledger/format/text_table.h"

namespace ledger::format {

struct ScopeNode {
  std::uint32_t parent = 0;
  std::uint32_t name = 0;    // text
  std::uint32_t origin = 0;  // of a backward node: the scope in which its forward ran; 0: not known
  record::Layer source = record::Layer::kNone;
  std::uint8_t flags = 0;  // record::kScope...
  bool defined = false;
};

class ScopeTable {
 public:
  // As with texts: a scope takes a slot, so there are no more ids than slots.
  explicit ScopeTable(std::size_t slots) : max_id_(slots) {}

  // False when the definition contradicts the format. A parent is defined before its children and has a smaller id,
  // which is also what makes a cycle impossible.
  bool Add(const record::ScopeDefinition& definition);

  // "step 3/forward/layer.0"; "" for the root, "<scope N>" for a scope that was never defined.
  std::string Path(std::uint32_t id, const TextTable& texts) const;

  // By id; the root is first. Every parent comes before its children.
  absl::Span<const ScopeNode> nodes() const { return nodes_; }
  // The root's for one that was never defined.
  const ScopeNode& Get(std::uint32_t id) const { return nodes_[id < nodes_.size() ? id : 0]; }

 private:
  std::size_t max_id_;
  std::vector<ScopeNode> nodes_ = std::vector<ScopeNode>(1);
};

}  // namespace ledger::format
