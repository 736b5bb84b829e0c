#include "ledger/report/json_training.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "ledger/format/names.h"
#include "ledger/report/host_nodes.h"
#include "ledger/report/steps.h"

namespace ledger::report {
namespace {

using Json = nlohmann::ordered_json;
using attribution::Category;

constexpr std::size_t kMaxListed = 100;
// Rows of a long run: the first and the last of them.
constexpr std::size_t kFirstOrLast = 3000;

template <typename Rows>
bool LeftOut(const Rows& rows, std::size_t i) {
  return i >= kFirstOrLast && i + kFirstOrLast < rows.size();
}

std::string Name(Category category) { return std::string(attribution::CategoryName(category)); }

double Ratio(std::uint64_t of, std::uint64_t to) {
  return to == 0 ? 0 : static_cast<double>(of) / static_cast<double>(to);
}

Json CommunicationJson(const RankReport& rank) {
  Json json = Json::array();
  for (std::size_t i = 0; i < rank.communication.size(); ++i) {
    if (LeftOut(rank.communication, i)) continue;
    const attribution::Communication& each = rank.communication[i];
    const std::int64_t step = each.in_setup ? -1 : static_cast<std::int64_t>(each.step);
    json.push_back({{"step", step},
                    {"operation", format::OperationName(each.operation)},
                    {"communicator", each.communicator},
                    {"ranks", each.ranks},
                    {"count", each.calls},
                    {"payload_bytes", each.payload_bytes},
                    {"buffer_bytes", each.buffer_bytes},
                    {"wire_bytes", each.wire_bytes},
                    {"calls_of", each.calls_of}});
  }
  return json;
}

Json CommunicatorsJson(const RankReport& rank) {
  Json json = Json::array();
  for (std::size_t i = 0; i < rank.communicators.size(); ++i) {
    if (LeftOut(rank.communicators, i)) continue;
    const CommunicatorReport& each = rank.communicators[i];
    Json communicator = {
        {"communicator", each.name}, {"nccl_name", each.nccl_name}, {"ranks", each.ranks}, {"rank", each.rank}};
    if (each.group) {
      communicator["process_group"] = {{"name", each.group->name},
                                       {"description", each.group->description},
                                       {"ranks", each.group->ranks},
                                       {"rank", each.group->rank},
                                       {"first_rank", each.group->first_rank},
                                       {"rank_stride", each.group->rank_stride}};
    }
    json.push_back(std::move(communicator));
  }
  return json;
}

Json TransientJson(const TransientReport& report) {
  const attribution::TransientUse& use = report.use;
  return {{"bytes", use.Total()},
          {"time_ns", report.time_ns},
          {"phase", report.phase},
          {"gathered_bytes", use.Gathered()},
          {"in_use_bytes", use.InUse()},
          {"output_bytes", use.outputs},
          {"ahead_bytes", use.ahead},
          {"reduce_scatter_bytes", use.reduce_scatter},
          {"other_buffer_bytes", use.other_buffers},
          {"workspace_bytes", use.workspace}};
}

Json GatheredJson(const GatheredReport& gathered) {
  Json groups = Json::array(), held = Json::array();
  for (const attribution::GatheredGroup& group : gathered.groups) {
    groups.push_back(
        {{"module", group.name}, {"bytes", group.bytes}, {"blocks", group.blocks}, {"ahead", group.ahead}});
  }
  for (const HeldReport& each : gathered.held) {
    held.push_back({{"module", each.name},
                    {"bytes", each.bytes},
                    {"blocks", each.blocks},
                    {"age_steps", each.steps},
                    {"age_forwards", each.forwards},
                    {"since_ns", each.since_ns},
                    {"until_ns", each.until_ns}});
  }
  return {{"largest", TransientJson(gathered.largest)},
          {"groups", groups},
          {"most_ahead", TransientJson(gathered.most_ahead)},
          {"transient", TransientJson(gathered.transient)},
          {"largest_reduce_scatter_bytes", gathered.largest_reduce_scatter},
          {"held", held}};
}

Json ModelStateJson(const ModelStateReport& state, const ModelSummary& model) {
  Json categories = Json::object();
  for (std::size_t i = 0; i < attribution::kCategoryCount; ++i) {
    const auto category = static_cast<Category>(i);
    if (!attribution::IsModelState(category)) continue;
    const std::uint64_t held = state.held[i], whole = model.Bytes(category);
    categories[Name(category)] = {
        {"held_bytes", held}, {"bytes_per_parameter", model.PerParameter(held)}, {"shard_factor", Ratio(whole, held)}};
  }
  return {{"held_bytes", state.Held()},
          {"time_ns", state.time_ns},
          {"bytes_per_parameter", model.PerParameter(state.Held())},
          {"shard_factor", Ratio(model.bytes, state.Held())},
          {"categories", categories},
          {"unsharded_gradient_bytes", state.unsharded_gradients},
          {"master_gradient_bytes", state.master_gradients},
          {"persistent_bytes_at_peak", state.persistent_at_peak},
          {"transient_bytes_at_peak", state.transient_at_peak}};
}

Json ChangesJson(const StepChange& change) {
  Json categories = Json::object();
  for (const auto& [category, bytes] : change.categories) categories[Name(category)] = bytes;
  return {{"from_step", change.from}, {"to_step", change.to}, {"bytes", change.bytes}, {"categories", categories}};
}

Json StepsJson(const std::vector<StepReport>& steps) {
  Json json = Json::array();
  for (std::size_t at = 0; at < steps.size(); ++at) {
    if (LeftOut(steps, at)) continue;
    const StepReport& step = steps[at];
    Json categories = Json::object();
    for (std::size_t i = 0; i < step.at_peak.size(); ++i) {
      if (step.at_peak[i] != 0) categories[Name(static_cast<Category>(i))] = step.at_peak[i];
    }
    json.push_back({{"step", step.step},
                    {"peak_bytes", step.peak_bytes},
                    {"peak_time_ns", step.peak_time_ns},
                    {"peak_phase", step.peak_phase},
                    {"end_bytes", step.end_bytes},
                    {"categories_at_peak", categories}});
  }
  return json;
}

Json GrowthJson(const RankReport& rank) {
  Json json = Json::array();
  for (const attribution::Growth& growth : rank.growth) {
    if (json.size() == kMaxListed) break;
    json.push_back({{"category", Name(growth.category)},
                    {"member", growth.member},
                    {"scope", growth.scope},
                    {"per", growth.evaluation ? "evaluation" : "step"},
                    {"rounds", growth.rounds},
                    {"bytes_per_round", growth.grown_bytes / growth.rounds},
                    {"blocks_per_round", Ratio(growth.grown_blocks, growth.rounds)},
                    {"live_bytes", growth.live_bytes},
                    {"live_blocks", growth.live_blocks}});
  }
  return json;
}

}  // namespace

void AddTraining(const RankReport& rank, const ModelSummary& model, Json& json) {
  const std::vector<StepReport> steps = StepsOf(rank);
  json["communication_count"] = rank.communication.size();
  json["communication"] = CommunicationJson(rank);
  json["communicators"] = CommunicatorsJson(rank);
  json["gathered"] = GatheredJson(rank.gathered);
  json["model_state"] = ModelStateJson(rank.model_state, model);
  json["step_count"] = steps.size();
  json["steps"] = StepsJson(steps);
  if (const auto change = AfterFirstStep(steps)) json["after_first_step"] = ChangesJson(*change);
  if (const auto rise = SteadyRise(steps)) json["steady_rise"] = ChangesJson(*rise);
  json["growth"] = GrowthJson(rank);
}

Json ModelSummaryJson(const ModelSummary& model) {
  Json categories = Json::object();
  for (const StateWidth& width : model.widths) {
    Json& category = categories[Name(width.category)];
    if (category.is_null()) {
      const std::uint64_t bytes = model.Bytes(width.category);
      category = {{"bytes", bytes}, {"bytes_per_parameter", model.PerParameter(bytes)}, {"keys", Json::object()}};
    }
    if (!width.key.empty()) {
      category["keys"][width.key] = {{"bytes", width.bytes}, {"bytes_per_parameter", model.PerParameter(width.bytes)}};
    }
  }
  return {{"parameters", model.parameters},
          {"bytes", model.bytes},
          {"bytes_per_parameter", model.PerParameter(model.bytes)},
          {"held_bytes", model.held},
          {"categories", categories}};
}

Json HoldersJson(const OomReport& oom) {
  Json json = Json::array();
  for (const HolderReport& holder : oom.holders) {
    json.push_back({{"category", Name(holder.category)},
                    {"scope", holder.scope},
                    {"owner", holder.owner},
                    {"bytes", holder.bytes},
                    {"count", holder.count},
                    {"held_at_end", holder.held_at_end},
                    {"until_ns", holder.until_ns}});
  }
  return json;
}

Json HostMemoryJson(const HostReport& host) {
  Json accounts = Json::array();
  for (const HostAccount& account : host.sheet.accounts) {
    Json each = {{"name", account.name}, {"bytes", account.bytes}, {"allocations", account.allocations}};
    if (account.requested) each["requested"] = *account.requested;
    accounts.push_back(std::move(each));
  }
  return {{"pinned_peak", host.pinned_peak},
          {"registered_peak", host.registered_peak},
          {"managed_peak", host.managed_peak},
          {"recorder_peak_rss", host.recorder_peak_rss},
          {"peak", host.sheet.bytes},
          {"peak_time_ns", host.sheet.time_ns},
          {"accounts", accounts}};
}

Json HostsJson(const RunReport& run) {
  Json json = Json::object();
  for (const HostNode& node : HostNodesOf(run)) {
    json[node.host] = {{"ranks", node.ranks},
                       {"pinned_peak", node.sum.pinned_peak},
                       {"registered_peak", node.sum.registered_peak},
                       {"managed_peak", node.sum.managed_peak},
                       {"recorder_peak_rss", node.sum.recorder_peak_rss},
                       {"peak", node.sum.sheet.bytes}};
  }
  return json;
}

}  // namespace ledger::report
