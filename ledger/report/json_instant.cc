#include "ledger/report/json_instant.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "ledger/report/sheet.h"

namespace ledger::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxMembers = 50;
constexpr std::size_t kMaxModules = 1000;
constexpr std::ptrdiff_t kPhasesOfAKind = 1000;

template <typename Bytes>
Json CategoriesJson(const Bytes& bytes) {
  Json json = Json::object();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != 0) json[std::string(attribution::CategoryName(static_cast<attribution::Category>(i)))] = bytes[i];
  }
  return json;
}

Json EvidenceJson(const CategoryReport& category) {
  Json json = Json::object();
  for (std::size_t i = attribution::kEvidenceCount; i-- > 0;) {
    json[std::string(attribution::EvidenceName(static_cast<attribution::Evidence>(i)))] = category.evidence[i];
  }
  return json;
}

Json CategoryJson(const CategoryReport& category, std::uint64_t total) {
  Json members = Json::array();
  for (const MemberReport& member : category.members) {
    if (members.size() == kMaxMembers) break;
    members.push_back({{"name", member.name}, {"bytes", member.bytes}, {"blocks", member.blocks}});
  }
  return {
      {"bytes", category.bytes},
      {"blocks", category.blocks},
      {"share", total == 0 ? 0.0 : static_cast<double>(category.bytes) / static_cast<double>(total)},
      {"requested", category.requested},
      {"rounded", category.rounded},
      {"max_bytes", category.max_bytes},
      {"max_time_ns", category.max_time_ns},
      {"evidence", EvidenceJson(category)},
      {"member_count", category.members.size()},
      {"members", members},
  };
}

Json BlockJson(const BlockReport& block) {
  return {
      {"record", block.slot},
      {"address", block.address},
      {"bytes", block.bytes},
      {"requested", block.requested},
      {"category", attribution::CategoryName(block.category)},
      {"role", block.role},
      {"process_group", block.process_group},
      {"evidence", attribution::EvidenceName(block.evidence)},
      {"name", block.name},
      {"module", block.module},
      {"op", block.op},
      {"scope", block.scope},
      {"owner", block.owner},
      {"phase", block.phase},
      {"born_ns", block.born_ns},
      {"freed_ns", block.freed_ns},
  };
}

Json AccountsJson(const replay::Balance& balance) {
  Json json = Json::object();
  for (const auto& [name, bytes] : AccountsOf(balance)) json[name] = {{"bytes", bytes}};
  return json;
}

Json ModulesJson(const InstantReport& instant) {
  Json json = Json::array();
  for (const ModuleReport& module : instant.modules) {
    if (json.size() == kMaxModules) break;
    json.push_back(
        {{"module", module.name}, {"bytes", module.bytes}, {"categories", CategoriesJson(module.categories)}});
  }
  return json;
}

// All of them, unless the run is long: then the first, the last, and the highest of the others, in order.
std::vector<std::size_t> ListedPhases(const std::vector<PhaseReport>& phases) {
  std::vector<std::size_t> listed(phases.size());
  std::iota(listed.begin(), listed.end(), std::size_t{0});
  if (std::ssize(listed) <= 3 * kPhasesOfAKind) return listed;
  const auto middle = listed.begin() + kPhasesOfAKind, end = listed.end() - kPhasesOfAKind;
  std::stable_sort(middle, end,
                   [&](std::size_t a, std::size_t b) { return phases[a].peak_bytes > phases[b].peak_bytes; });
  listed.erase(middle + kPhasesOfAKind, end);
  std::sort(listed.begin(), listed.end());
  return listed;
}

}  // namespace

Json PoolsJson(const std::vector<replay::PoolUse>& pools) {
  Json json = Json::array();
  for (const replay::PoolUse& use : pools) {
    json.push_back({{"name", replay::PoolName(use.pool)},
                    {"reserved", use.reserved},
                    {"allocated", use.allocated},
                    {"pending_free", use.free.pending},
                    {"inactive_split", use.free.inactive},
                    {"cached_segments", use.free.cached}});
  }
  return json;
}

Json InstantJson(const InstantReport& instant, bool blocks) {
  Json categories = Json::object();
  for (const CategoryReport& category : instant.categories) {
    categories[std::string(attribution::CategoryName(category.category))] = CategoryJson(category, instant.bytes);
  }
  Json json = {
      {"device", instant.device},
      {"bytes", instant.bytes},
      {"time_ns", instant.time_ns},
      {"phase", instant.phase},
      {"step", instant.step},
      {"categories", categories},
      {"sum_of_category_maxima", instant.sum_of_maxima},
      {"accounts", AccountsJson(instant.balance)},
      {"private_pools", PoolsJson(instant.balance.private_pools)},
      {"modules", ModulesJson(instant)},
  };
  if (!blocks) return json;
  Json& all = json["blocks"] = Json::array();
  for (const BlockReport& block : instant.blocks) all.push_back(BlockJson(block));
  return json;
}

Json PhasesJson(const RankReport& rank) {
  Json json = Json::array();
  for (const std::size_t i : ListedPhases(rank.phases)) {
    const PhaseReport& phase = rank.phases[i];
    json.push_back({
        {"step", phase.step},
        {"phase", phase.name},
        {"start_ns", phase.start_ns},
        {"end_ns", phase.end_ns},
        {"begin_bytes", phase.begin_bytes},
        {"peak_bytes", phase.peak_bytes},
        {"peak_time_ns", phase.peak_time_ns},
        {"end_bytes", phase.end_bytes},
        {"categories_at_peak", CategoriesJson(phase.at_peak)},
        {"categories_at_end", CategoriesJson(phase.at_end)},
    });
  }
  return json;
}

}  // namespace ledger::report
