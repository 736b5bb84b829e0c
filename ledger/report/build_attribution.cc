#include "ledger/report/build_attribution.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ledger/attribution/attribution.h"
#include "ledger/report/build_training.h"
#include "ledger/report/instant.h"

namespace ledger::report {
namespace {

using attribution::Attribution;
using replay::Analysis;
using replay::DeviceAnalysis;

void BuildInstants(const Analysis& analysis, const Attribution& attribution, const DeviceAnalysis& from,
                   const BuildOptions& options, DeviceReport& device) {
  device.at_peak = BuildInstant(analysis, attribution, from, from.allocated.peak.slot);
  if (!options.at) return;
  const auto slot = FindInstant(analysis, attribution, from.device, *options.at);
  if (slot) device.at = BuildInstant(analysis, attribution, from, *slot);
}

// Two independent ways: the replay's sum at its peak, and the blocks that have a category then.
replay::Identity CategoriesIdentity(const std::vector<DeviceReport>& devices) {
  replay::Identity identity{"categories_sum", true, ""};
  std::vector<std::string> parts;
  for (const DeviceReport& device : devices) {
    std::uint64_t sum = 0;
    for (const CategoryReport& category : device.at_peak.categories) sum += category.bytes;
    identity.holds = identity.holds && sum == device.peaks.allocated.bytes;
    parts.push_back(absl::StrCat("device ", device.device, ": categories of ", device.at_peak.blocks.size(),
                                 " live blocks ", sum, ", allocated peak ", device.peaks.allocated.bytes));
  }
  identity.detail = absl::StrJoin(parts, "; ");
  return identity;
}

}  // namespace

void Attribute(const Analysis& analysis, const BuildOptions& options, RankReport& rank) {
  const Attribution attribution(analysis.file(), analysis.devices());
  for (std::size_t i = 0; i < rank.devices.size(); ++i) {
    BuildInstants(analysis, attribution, analysis.devices()[i], options, rank.devices[i]);
  }
  if (options.at) rank.at_name = options.at->text;
  if (!rank.devices.empty()) BuildTraining(attribution, analysis.devices()[rank.main], rank);
  for (std::size_t i = 0; i < rank.ooms.size(); ++i) {
    BuildHolders(attribution, analysis.ooms()[i].slot, rank.ooms[i]);
  }
  rank.unplaced = attribution.unplaced();
  if (!rank.devices.empty()) rank.identities.push_back(CategoriesIdentity(rank.devices));
}

}  // namespace ledger::report
