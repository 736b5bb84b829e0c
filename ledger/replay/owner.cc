#include "ledger/replay/owner.h"

#include "absl/strings/match.h"

namespace ledger::replay {

Owner OwnerFromName(absl::string_view name) {
  if (absl::StartsWith(name, "libc10_cuda.so")) return Owner::kCachingAllocator;
  if (absl::StartsWith(name, "libnccl")) return Owner::kNccl;
  if (absl::StrContains(name, ".so")) return Owner::kLibrary;
  return Owner::kProgram;
}

OwnerTable::OwnerTable(const format::TextTable& texts) {
  owners_.reserve(texts.max_id() + std::size_t{1});
  for (std::uint32_t id = 0; id <= texts.max_id(); ++id) owners_.push_back(OwnerFromName(texts.Get(id)));
}

}  // namespace ledger::replay
