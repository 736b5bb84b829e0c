#include "ledger/report/compare_ranks.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "absl/strings/str_cat.h"
#include "ledger/report/sheet.h"

namespace ledger::report {
namespace {

constexpr std::size_t kMaxDifferences = 5;

using BytesByName = std::map<std::string, std::uint64_t>;

BytesByName SiteBytes(const DeviceReport& device) {
  BytesByName bytes;
  for (const auto& site : device.sites) {
    const std::string scope = site.scope.empty() ? "(no range)" : site.scope;
    bytes[site.owner.empty() ? scope : absl::StrCat(scope, " by ", site.owner)] += site.bytes;
  }
  return bytes;
}

// The leaves of the sheet, which do not overlap.
BytesByName AccountBytes(const DeviceReport& device) {
  BytesByName bytes;
  InstantReport instant;
  instant.balance = device.peaks.device.balance;
  const auto rows = MakeSheet({&instant});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool leaf = i + 1 == rows.size() || rows[i + 1].depth <= rows[i].depth;
    if (leaf) bytes[rows[i].name] += rows[i].bytes[0];
  }
  return bytes;
}

std::vector<Difference> Subtract(const BytesByName& high, const BytesByName& low) {
  BytesByName all = high;
  all.insert(low.begin(), low.end());
  std::vector<Difference> differences;
  const auto find = [](const BytesByName& bytes, const std::string& name) {
    const auto found = bytes.find(name);
    return found == bytes.end() ? std::uint64_t{0} : found->second;
  };
  for (const auto& [name, unused] : all) {
    const auto difference = static_cast<std::int64_t>(find(high, name) - find(low, name));
    if (difference != 0) differences.push_back({name, difference});
  }
  std::stable_sort(differences.begin(), differences.end(),
                   [](const Difference& a, const Difference& b) { return std::llabs(a.bytes) > std::llabs(b.bytes); });
  if (differences.size() > kMaxDifferences) differences.resize(kMaxDifferences);
  return differences;
}

RankComparison Compare(const RunReport& run, const std::function<std::uint64_t(const DeviceReport&)>& value,
                       BytesByName (*parts)(const DeviceReport&)) {
  RankComparison comparison;
  const DeviceReport* high = nullptr;
  const DeviceReport* low = nullptr;
  for (const RankReport& rank : run.ranks) {
    const DeviceReport* device = rank.main_device();
    if (device == nullptr) continue;
    if (high == nullptr || value(*device) > value(*high)) {
      high = device;
      comparison.highest = rank.rank;
    }
    if (low == nullptr || value(*device) < value(*low)) {
      low = device;
      comparison.lowest = rank.rank;
    }
  }
  if (high == nullptr) return comparison;
  comparison.highest_bytes = value(*high);
  comparison.lowest_bytes = value(*low);
  if (comparison.highest_bytes != comparison.lowest_bytes) comparison.differences = Subtract(parts(*high), parts(*low));
  return comparison;
}

}  // namespace

RankComparison CompareAllocated(const RunReport& run) {
  return Compare(
      run, [](const DeviceReport& d) { return d.peaks.allocated.bytes; }, SiteBytes);
}

RankComparison CompareDevice(const RunReport& run) {
  return Compare(
      run, [](const DeviceReport& d) { return d.peaks.device.bytes; }, AccountBytes);
}

}  // namespace ledger::report
