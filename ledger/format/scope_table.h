// The trie of scopes of one ledger: NVTX ranges, module paths and ranges of the public API alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "interpose/record/record.h"
#include "ledger/format/text_table.h"

namespace ledger::format {

class ScopeTable {
 public:
  // As with texts: a scope takes a slot, so there are no more ids than slots.
  explicit ScopeTable(std::size_t slots) : max_id_(slots) {}

  // False when the definition contradicts the format. A parent is defined before its children and has a smaller id,
  // which is also what makes a cycle impossible.
  bool Add(const record::ScopeDefinition& definition);

  // "step 3/forward/layer.0"; "" for the root, "<scope N>" for a scope that was never defined.
  std::string Path(std::uint32_t id, const TextTable& texts) const;

  std::uint32_t Parent(std::uint32_t id) const { return id < nodes_.size() ? nodes_[id].parent : 0; }

 private:
  struct Node {
    std::uint32_t parent = 0;
    std::uint32_t name = 0;
    bool defined = false;
  };
  std::size_t max_id_;
  std::vector<Node> nodes_;  // by id
};

}  // namespace ledger::format
