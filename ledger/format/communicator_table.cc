#include "ledger/format/communicator_table.h"

#include <algorithm>

namespace ledger::format {

void CommunicatorTable::Add(const record::CommunicatorInfo& info, std::uint64_t slot) {
  std::vector<std::size_t>& same_handle = by_handle_[info.communicator];
  // The same one again, now that it is complete.
  if (!same_handle.empty() && info.token != 0 && tokens_[same_handle.back()] == info.token) {
    all_[same_handle.back()].info = slot;
    return;
  }
  same_handle.push_back(all_.size());
  if (info.token != 0) by_token_.try_emplace(info.token, all_.size());
  all_.push_back({slot, slot, kNone});
  tokens_.push_back(info.token);
}

void CommunicatorTable::AddGroup(const record::ProcessGroupInfo& group, std::uint64_t slot) {
  const auto same_handle = by_handle_.find(group.communicator);
  if (same_handle != by_handle_.end()) all_[same_handle->second.back()].group = slot;
}

std::optional<std::size_t> CommunicatorTable::Find(std::uint64_t context, std::uint64_t slot) const {
  if (const auto token = by_token_.find(context); token != by_token_.end()) return token->second;
  const auto same_handle = by_handle_.find(context);
  if (same_handle == by_handle_.end()) return std::nullopt;
  const std::vector<std::size_t>& positions = same_handle->second;
  const auto next =
      std::upper_bound(positions.begin(), positions.end(), slot,
                       [this](std::uint64_t at, std::size_t position) { return at < all_[position].made; });
  return next == positions.begin() ? *next : *(next - 1);
}

}  // namespace ledger::format
