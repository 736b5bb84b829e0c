#include "ledger/report/json.h"

#include <algorithm>
#include <set>

#include "ledger/report/compare_ranks.h"
#include "ledger/report/json_instant.h"
#include "ledger/report/json_training.h"
#include "nlohmann/json.hpp"

namespace ledger::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIndent = 2;
constexpr std::size_t kMaxSites = 100;

Json AccountsJson(const std::vector<replay::Account>& accounts) {
  Json json = Json::array();
  for (const auto& account : accounts) {
    json.push_back({{"name", account.name}, {"bytes", account.bytes}, {"count", account.count}});
  }
  return json;
}

Json BalanceJson(const replay::Balance& balance) {
  return {
      {"used", balance.used},
      {"used_note", balance.used_note},
      {"reserved", balance.reserved},
      {"allocated", balance.allocated},
      {"pending_free", balance.free.pending},
      {"inactive_split", balance.free.inactive},
      {"cached_segments", balance.free.cached},
      {"private_pools", PoolsJson(balance.private_pools)},
      {"nccl", AccountsJson(balance.nccl)},
      {"libraries", AccountsJson(balance.libraries)},
      {"program", AccountsJson(balance.program)},
      {"pool_slack", balance.pool_slack},
      {"context", balance.context},
      {"unexplained", balance.unexplained},
      {"overdrawn", balance.overdrawn},
  };
}

Json PeakJson(const PeakReport& peak) {
  return {
      {"bytes", peak.bytes}, {"time_ns", peak.time_ns}, {"phase", peak.phase}, {"balance", BalanceJson(peak.balance)}};
}

Json PeaksJson(const PeaksReport& peaks) {
  return {{"allocated", PeakJson(peaks.allocated)},
          {"reserved", PeakJson(peaks.reserved)},
          {"device", PeakJson(peaks.device)}};
}

Json SitesJson(const std::vector<replay::Site>& sites) {
  Json json = Json::array();
  for (const auto& site : sites) {
    if (json.size() == kMaxSites) break;
    json.push_back({{"scope", site.scope}, {"owner", site.owner}, {"bytes", site.bytes}, {"count", site.count}});
  }
  return json;
}

void AddInstants(const DeviceReport& device, const JsonOptions& options, Json& json) {
  if (device.at_peak.known) json["at_peak"] = InstantJson(device.at_peak, options.blocks);
  if (device.at.known) json["at"] = InstantJson(device.at, options.blocks);
}

Json DeviceJson(const DeviceReport& device, const JsonOptions& options) {
  Json steps = Json::array();
  for (const auto& step : device.unexplained_steps) {
    steps.push_back(
        {{"time_ns", step.time_ns}, {"grew_by", step.grew_by}, {"bytes", step.bytes}, {"after", step.what}});
  }
  Json json = {
      {"device", device.device},
      {"name", device.name},
      {"total_bytes", device.total_bytes},
      {"simulated", device.simulated},
      {"note", device.note},
      {"peaks", PeaksJson(device.peaks)},
      {"sites", SitesJson(device.sites)},
      {"site_count", device.sites.size()},
      {"requested",
       {{"blocks", device.requested.blocks},
        {"known_blocks", device.requested.known_blocks},
        {"requested", device.requested.requested},
        {"rounded", device.requested.rounded}}},
      {"unexplained_steps", steps},
  };
  AddInstants(device, options, json);
  return json;
}

Json UnplacedJson(const attribution::Unplaced& unplaced) {
  const bool any = unplaced.first != attribution::kNever;
  return {{"names", unplaced.names},
          {"tags", unplaced.tags},
          {"saved_tensors", unplaced.saved_tensors},
          {"buffers", unplaced.buffers},
          {"sizes", unplaced.sizes},
          {"first_record", any ? static_cast<std::int64_t>(unplaced.first) : std::int64_t{-1}}};
}

Json OomsJson(const RankReport& rank) {
  Json json = Json::array();
  for (const auto& oom : rank.ooms) {
    json.push_back({{"time_ns", oom.time_ns},
                    {"device", oom.device},
                    {"requested", oom.requested},
                    {"allocated", oom.allocated},
                    {"reserved", oom.reserved},
                    {"device_free", oom.device_free},
                    {"device_total", oom.device_total},
                    {"phase", oom.phase},
                    {"holder_count", oom.holder_count},
                    {"held_at_end", oom.held_at_end},
                    {"holders", HoldersJson(oom)}});
  }
  return json;
}

Json FailuresJson(const RankReport& rank) {
  Json json = Json::array();
  for (const auto& failure : rank.failures) {
    json.push_back({{"time_ns", failure.time_ns},
                    {"device", failure.device},
                    {"bytes", failure.bytes},
                    {"call", failure.call},
                    {"owner", failure.owner},
                    {"result", failure.result},
                    {"phase", failure.phase}});
  }
  return json;
}

Json ValueReadsJson(const ValueReads& reads) {
  Json places = Json::array();
  for (const auto& [place, count] : reads.places) places.push_back({{"place", place}, {"count", count}});
  return {{"count", reads.count}, {"places", places}};
}

Json RankJson(const RankReport& rank, const ModelSummary& model, const JsonOptions& options) {
  Json settings = Json::object();
  for (const auto& [key, value] : rank.settings) settings[key] = value;
  Json losses = Json::array();
  for (const auto& loss : rank.losses) {
    losses.push_back({{"reason", loss.reason}, {"count", loss.count}, {"meaning", loss.meaning}});
  }
  Json identities = Json::array();
  for (const auto& identity : rank.identities) {
    identities.push_back({{"name", identity.name}, {"holds", identity.holds}, {"detail", identity.detail}});
  }
  Json devices = Json::array();
  for (const auto& device : rank.devices) devices.push_back(DeviceJson(device, options));
  const DeviceReport* main = rank.main_device();
  Json json = {
      {"rank", rank.rank},
      {"local_rank", rank.local_rank},
      {"world_size", rank.world_size},
      {"pid", rank.pid},
      {"host", rank.host},
      {"program", rank.program},
      {"file", rank.file},
      {"recorder_version", rank.recorder_version},
      {"clean_end", rank.clean_end},
      {"exact", rank.exact()},
      {"events", rank.events},
      {"duration_ns", rank.duration_ns},
      {"peaks", PeaksJson(main != nullptr ? main->peaks : PeaksReport())},
      {"main_device", main != nullptr ? main->device : -1},
      {"phases_inferred", rank.phases_inferred},
      {"phase_count", rank.phases.size()},
      {"phases", PhasesJson(rank)},
      {"losses", losses},
      {"unplaced", UnplacedJson(rank.unplaced)},
      {"identities", identities},
      {"values_read_back", ValueReadsJson(rank.value_reads)},
      {"devices", devices},
      {"host_memory", HostMemoryJson(rank.host_sheet)},
      {"oom_count", rank.oom_count},
      {"ooms", OomsJson(rank)},
      {"failure_count", rank.failure_count},
      {"failures", FailuresJson(rank)},
      {"settings", settings},
  };
  AddTraining(rank, model, json);
  if (main != nullptr) AddInstants(*main, options, json);
  return json;
}

Json ComparisonJson(const RankComparison& comparison) {
  Json differences = Json::array();
  for (const auto& difference : comparison.differences) {
    differences.push_back({{"what", difference.what}, {"bytes", difference.bytes}});
  }
  return {{"highest_rank", comparison.highest},
          {"highest_bytes", comparison.highest_bytes},
          {"lowest_rank", comparison.lowest},
          {"lowest_bytes", comparison.lowest_bytes},
          {"differences", differences}};
}

Json SummaryJson(const RunReport& run) {
  std::set<std::string> hosts;
  std::uint64_t events = 0, reads = 0, allocated = 0, reserved = 0, used = 0;
  for (const RankReport& rank : run.ranks) {
    hosts.insert(rank.host);
    events += rank.events;
    reads += rank.value_reads.count;
    if (const DeviceReport* main = rank.main_device()) {
      allocated += main->peaks.allocated.bytes;
      reserved += main->peaks.reserved.bytes;
      used += main->peaks.device.bytes;
    }
  }
  return {
      {"ranks", run.ranks.size()},
      {"run_id", run.ranks.empty() ? "" : run.ranks.front().run_id},
      {"program", run.ranks.empty() ? "" : run.ranks.front().program},
      {"hosts", hosts},
      {"start_realtime_ns", run.start_realtime_ns},
      {"events", events},
      {"exact", run.exact()},
      {"simulated", run.simulated()},
      {"values_read_back", reads},
      {"identities_hold", run.identities_hold()},
      {"sum_of_peaks", {{"allocated", allocated}, {"reserved", reserved}, {"device", used}}},
      {"allocated", ComparisonJson(CompareAllocated(run))},
      {"device", ComparisonJson(CompareDevice(run))},
      {"model_state", ModelSummaryJson(run.model_state)},
      {"host_memory", HostsJson(run)},
      {"notes", run.notes},
  };
}

}  // namespace

std::string ToJson(const RunReport& run, const JsonOptions& options) {
  Json ranks = Json::array();
  for (const RankReport& rank : run.ranks) ranks.push_back(RankJson(rank, run.model_state, options));
  const Json json = {{"report", "gpuledger"}, {"version", 1}, {"summary", SummaryJson(run)}, {"ranks", ranks}};
  // Names come out of a file and need not be UTF-8.
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ledger::report
