// The part of the report for people that says who held the memory: one rank's, in detail.
#pragma once

#include <cstddef>
#include <string>

#include "ledger/report/model.h"

namespace ledger::report {

// What the live blocks are grouped by.
enum class GroupBy { kCategory, kModule, kOp, kSite, kOwner };

struct HoldersOptions {
  GroupBy by = GroupBy::kCategory;
  std::size_t limit = 10;  // of groups, and of the members of a category
};

// The instant of a rank's device that a report describes: the one that was asked for, which there need not be, or the
// allocated peak.
const InstantReport& Shown(const RankReport& rank, const DeviceReport& device);

// Live bytes of the main device at the shown instant, grouped; and the categories' own maxima beside the peak.
std::string HoldersText(const RankReport& rank, const HoldersOptions& options);

// The same of the rank's other devices, a line for each.
std::string OtherDevicesText(const RankReport& rank);

// Peaks and ends of the phases, step by step.
std::string PhasesText(const RankReport& rank);

// "its allocated peak", "mark:NAME".
std::string InstantName(const RankReport& rank);

}  // namespace ledger::report
