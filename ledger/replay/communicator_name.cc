#include "ledger/replay/communicator_name.h"

#include "absl/strings/str_cat.h"

namespace ledger::replay {
namespace {

using format::CommunicatorTable;
using format::LedgerFile;

// What PyTorch has for a description when the program gives none.
constexpr char kNoDescription[] = "undefined";

// Null: nobody said it.
const record::ProcessGroupInfo* GroupOf(const LedgerFile& file, std::size_t position) {
  const std::uint64_t slot = file.communicators()[position].group;
  return slot == CommunicatorTable::kNone ? nullptr : &file.slots()[slot].As<record::ProcessGroupInfo>();
}

}  // namespace

std::string CommunicatorName(const LedgerFile& file, std::uint64_t context, std::uint64_t slot) {
  if (context == 0) return "communicator not known";
  const auto found = file.FindCommunicator(context, slot);
  return found ? CommunicatorName(file, *found) : "communicator that was never finished";
}

std::string CommunicatorName(const LedgerFile& file, std::size_t position) {
  const auto& info = file.slots()[file.communicators()[position].info].As<record::CommunicatorInfo>();
  const record::ProcessGroupInfo* const group = GroupOf(file, position);
  const std::string text = group == nullptr ? file.Text(info.name) : ProcessGroupName(file, position);
  const std::string name = text.empty() ? "" : absl::StrCat(" \"", text, "\"");
  const std::string whole = group != nullptr && group->ranks != info.nranks ? absl::StrCat(" of ", group->ranks) : "";
  return absl::StrCat("communicator ", position, name, ", ", info.nranks, whole,
                      info.nranks == 1 && whole.empty() ? " rank" : " ranks");
}

std::string ProcessGroupName(const LedgerFile& file, std::size_t position) {
  const record::ProcessGroupInfo* const group = GroupOf(file, position);
  if (group == nullptr) return "";
  const std::string description = file.Text(group->description);
  return description.empty() || description == kNoDescription ? file.Text(group->name) : description;
}

std::string ProcessGroupRanks(const LedgerFile& file, std::size_t position) {
  const record::ProcessGroupInfo* const group = GroupOf(file, position);
  if (group == nullptr || group->first_rank < 0 || group->rank_stride < 0 || group->ranks == 0) return "";
  if (group->ranks == 1) return absl::StrCat(group->first_rank);
  const std::int64_t stride = group->rank_stride;
  const std::int64_t last = group->first_rank + stride * (static_cast<std::int64_t>(group->ranks) - 1);
  return absl::StrCat(group->first_rank, "-", last, stride == 1 ? "" : absl::StrCat(" by ", stride));
}

}  // namespace ledger::replay
