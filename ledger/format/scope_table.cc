#include "ledger/format/scope_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace ledger::format {
namespace {

// Deeper than any program nests its ranges; a path is cut there, so that a hostile chain stays affordable.
constexpr std::size_t kMaxPathNames = 256;

}  // namespace

bool ScopeTable::Add(const record::ScopeDefinition& definition) {
  if (definition.id == 0 || definition.id > max_id_ || definition.parent >= definition.id) return false;
  if (nodes_.size() <= definition.id) nodes_.resize(definition.id + std::size_t{1});
  // Its origin is older than itself; anything else cannot be followed safely.
  const std::uint32_t origin = definition.origin < definition.id ? definition.origin : 0;
  nodes_[definition.id] = {definition.parent, definition.name, origin, definition.source, definition.flags, true};
  return true;
}

std::string ScopeTable::Path(std::uint32_t id, const TextTable& texts) const {
  std::vector<std::string> names;
  while (id != 0) {
    if (names.size() == kMaxPathNames) {
      names.push_back("...");
      break;
    }
    if (id >= nodes_.size() || !nodes_[id].defined) {
      names.push_back(absl::StrCat("<scope ", id, ">"));
      break;
    }
    names.push_back(texts.Get(nodes_[id].name));
    id = nodes_[id].parent;
  }
  std::reverse(names.begin(), names.end());
  return absl::StrJoin(names, "/");
}

}  // namespace ledger::format
