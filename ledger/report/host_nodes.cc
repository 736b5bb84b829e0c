#include "ledger/report/host_nodes.h"

#include <map>
#include <utility>

namespace ledger::report {

std::vector<HostNode> HostNodesOf(const RunReport& run) {
  std::map<std::string, HostNode> by_name;
  for (const RankReport& rank : run.ranks) {
    HostNode& node = by_name[rank.host];
    node.host = rank.host;
    ++node.ranks;
    node.sum.pinned_peak += rank.host_sheet.pinned_peak;
    node.sum.registered_peak += rank.host_sheet.registered_peak;
    node.sum.managed_peak += rank.host_sheet.managed_peak;
    node.sum.recorder_peak_rss += rank.host_sheet.recorder_peak_rss;
    node.sum.sheet.bytes += rank.host_sheet.sheet.bytes;
  }
  std::vector<HostNode> nodes;
  for (auto& [name, node] : by_name) nodes.push_back(std::move(node));
  return nodes;
}

}  // namespace ledger::report
