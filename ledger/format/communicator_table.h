// The NCCL communicators of one ledger, and the framework's process groups that they work for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "interpose/record/record.h"

namespace ledger::format {

class CommunicatorTable {
 public:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  // Slots of the records about it.
  struct Communicator {
    std::uint64_t made = 0;
    std::uint64_t info = 0;       // what is known of it: the same, or what followed when it was complete
    std::uint64_t group = kNone;  // of the framework; kNone: not said
  };

  void Add(const record::CommunicatorInfo& info, std::uint64_t slot);
  void AddGroup(const record::ProcessGroupInfo& group, std::uint64_t slot);

  // In the order in which they were made.
  absl::Span<const Communicator> all() const { return all_; }

  // The position of a communicator: by handle, or by the token that stood for it while it was made. A token is never
  // reused; a handle may be, and then means the last communicator that had it by that slot, or else the next.
  std::optional<std::size_t> Find(std::uint64_t context, std::uint64_t slot) const;

 private:
  std::vector<Communicator> all_;
  absl::flat_hash_map<std::uint64_t, std::size_t> by_token_;
  absl::flat_hash_map<std::uint64_t, std::vector<std::size_t>> by_handle_;  // ascending
  std::vector<std::uint64_t> tokens_;                                       // by position
};

}  // namespace ledger::format
