// Whose a driver allocation is, told by the library that asked for it.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "interpose/record/record.h"
#include "ledger/format/text_table.h"

namespace ledger::replay {

enum class Owner : std::uint8_t {
  kCachingAllocator,  // PyTorch's: its allocations are segments
  kNccl,
  kLibrary,  // any other shared library
  kProgram,  // the executable itself, or not known
};

Owner OwnerFromName(absl::string_view name);

// The answer for every text of a ledger, so that a replay compares no strings.
class OwnerTable {
 public:
  explicit OwnerTable(const format::TextTable& texts);

  Owner Find(std::uint32_t text, record::Layer layer) const {
    if (layer == record::Layer::kNccl) return Owner::kNccl;
    return text < owners_.size() ? owners_[text] : Owner::kProgram;
  }

 private:
  std::vector<Owner> owners_;
};

}  // namespace ledger::replay
