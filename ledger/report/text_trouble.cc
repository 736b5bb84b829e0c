#include "ledger/report/text_trouble.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ledger/report/host_nodes.h"
#include "ledger/report/units.h"

namespace ledger::report {
namespace {

constexpr std::size_t kSiteWidth = 72;
constexpr std::size_t kShareWidth = 7;
constexpr std::size_t kCategoryWidth = 24;
constexpr std::size_t kMaxListed = 5;

void HostRow(std::string& out, absl::string_view name, std::size_t width, const HostReport& host) {
  Line(out,
       absl::StrCat(PadLeft(name, width), PadLeft(Gib(host.pinned_peak), kColumnWidth),
                    PadLeft(Gib(host.registered_peak), kColumnWidth), PadLeft(Gib(host.managed_peak), kColumnWidth),
                    PadLeft(Gib(host.recorder_peak_rss), kColumnWidth)));
}

// What ranks have alike is one line.
void HostAccounts(std::string& out, const RunReport& run) {
  struct Sum {
    std::uint64_t bytes = 0, requested = 0, allocations = 0;
    bool known = true;
  };
  std::map<std::string, Sum> accounts;
  for (const RankReport& rank : run.ranks) {
    for (const HostAccount& account : rank.host_sheet.sheet.accounts) {
      Sum& sum = accounts[Printable(account.name)];
      sum.bytes += account.bytes;
      sum.allocations += account.allocations;
      sum.requested += account.requested.value_or(0);
      sum.known &= account.requested.has_value();
    }
  }
  if (accounts.empty()) return;
  Line(out, absl::StrCat("  at ", run.ranks.size() > 1 ? "each rank's own maximum, together" : "its maximum"));
  for (const auto& [name, sum] : accounts) {
    Line(out,
         absl::StrCat(PadLeft(Gib(sum.bytes), 6 + kColumnWidth), "  ", name, ", ", Count(sum.allocations, "allocation"),
                      ", requested ", sum.known ? Gib(sum.requested) : std::string("not known")));
  }
}

// "until 3.120 s", "to the end", or how much of it.
std::string Until(const HolderReport& holder) {
  if (holder.held_at_end == 0) return absl::StrCat("until ", Seconds(holder.until_ns), " s");
  return holder.held_at_end == holder.bytes ? "to the end" : absl::StrCat(Gib(holder.held_at_end), " to the end");
}

// The allocator does not say it by itself.
std::string FreeThen(const OomReport& oom) {
  if (oom.device_total == 0) return "free on the device: not known";
  return absl::StrCat("free on the device: ", Gib(oom.device_free), " of ", Gib(oom.device_total));
}

void Holders(std::string& out, const OomReport& oom) {
  Line(out, absl::StrCat(PadLeft("GiB", kColumnWidth), PadLeft("", kShareWidth), PadLeft("blocks", kColumnWidth), "  ",
                         PadRight("category", kCategoryWidth), PadRight("held", kCategoryWidth), "allocated in"));
  const std::size_t shown = std::min(kMaxListed, oom.holders.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const HolderReport& holder = oom.holders[i];
    const std::string where =
        absl::StrCat(PrintablePath(holder.scope), holder.owner.empty() ? "" : " by ", Printable(holder.owner));
    Line(out, absl::StrCat(PadLeft(Gib(holder.bytes), kColumnWidth),
                           PadLeft(Percent(holder.bytes, oom.allocated), kShareWidth),
                           PadLeft(Grouped(holder.count), kColumnWidth), "  ",
                           PadRight(attribution::CategoryName(holder.category), kCategoryWidth),
                           PadRight(Until(holder), kCategoryWidth), CutFront(where, kSiteWidth)));
  }
  if (oom.holder_count > shown) {
    Line(out, absl::StrCat(PadLeft("", kColumnWidth), "  and ", Count(oom.holder_count - shown, "more place")));
  }
  Line(out, absl::StrCat("    of this, ", Gib(oom.held_at_end), " GiB was still held when the ledger ended"));
}

}  // namespace

std::string HostText(const RunReport& run) {
  std::string out = "\n";
  const std::vector<HostNode> nodes = HostNodesOf(run);
  Line(out, "Host memory, largest (GiB)");
  Line(out, absl::StrCat("  rank", PadLeft("pinned", kColumnWidth), PadLeft("registered", kColumnWidth),
                         PadLeft("managed", kColumnWidth), PadLeft("recorder", kColumnWidth)));
  for (const RankReport& rank : run.ranks) HostRow(out, absl::StrCat(rank.rank), 6, rank.host_sheet);
  if (run.ranks.size() > 1) {
    for (const HostNode& node : nodes) {
      HostRow(out, nodes.size() == 1 ? "all" : "sum", 6, node.sum);
      if (nodes.size() > 1)
        Line(out, absl::StrCat("        of ", Count(node.ranks, "rank"), " on ", Printable(node.host)));
    }
  }
  HostAccounts(out, run);
  return out;
}

std::string OutOfMemoryText(const RunReport& run) {
  std::string out;
  for (const RankReport& rank : run.ranks) {
    if (rank.ooms.empty()) continue;
    Line(out, "");
    Line(out, absl::StrCat("Out of memory on rank ", rank.rank, ", ", Count(rank.oom_count, "time")));
    for (const OomReport& oom : rank.ooms) {
      Line(out, absl::StrCat("  ", Seconds(oom.time_ns), " s, device ", oom.device, ", in ", PrintablePath(oom.phase),
                             ": requested ", Gib(oom.requested), " GiB; allocated ", Gib(oom.allocated), ", reserved ",
                             Gib(oom.reserved), ", ", FreeThen(oom), "; held by"));
      Holders(out, oom);
    }
  }
  return out;
}

std::string FailedAllocationsText(const RunReport& run) {
  std::string out;
  struct Failed {
    std::uint64_t count = 0, largest = 0;
  };
  std::map<std::string, Failed> by_call;
  for (const RankReport& rank : run.ranks) {
    for (const FailureReport& failure : rank.failures) {
      Failed& failed = by_call[absl::StrCat("rank ", rank.rank, "  ", Printable(failure.call), " by ",
                                            Printable(failure.owner), ", error ", failure.result)];
      ++failed.count;
      failed.largest = std::max(failed.largest, failure.bytes);
    }
  }
  if (by_call.empty()) return out;
  Line(out, "");
  Line(out, "Allocations that the driver refused");
  for (const auto& [call, failed] : by_call) {
    Line(out,
         absl::StrCat("  ", call, ": ", Count(failed.count, "time"), ", the largest ", Gib(failed.largest), " GiB"));
  }
  return out;
}

}  // namespace ledger::report
