#include "ledger/replay/truth.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"

namespace ledger::replay {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxFailuresShown = 8;

absl::Status Wrong(const std::string& name, const std::string& where, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", where, ": expected ", expected));
}

std::optional<std::uint64_t> Number(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  const auto value = found->get<std::int64_t>();
  return value < 0 ? std::nullopt : std::optional<std::uint64_t>(static_cast<std::uint64_t>(value));
}

std::optional<std::string> Name(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::int8_t DeviceOf(const Json& object) {
  return static_cast<std::int8_t>(std::min<std::uint64_t>(Number(object, "device").value_or(0), kMaxDevices - 1));
}

// The array under `key`, or an empty one where there is none.
const Json& ArrayOrEmpty(const Json& object, const char* key) {
  static const Json empty = Json::array();
  const auto found = object.find(key);
  return found == object.end() || !found->is_array() ? empty : *found;
}

TruthWindow ParseWindow(const Json& json) {
  TruthWindow window;
  window.from = Name(json, "from");
  window.to = Name(json, "to");
  window.device = DeviceOf(json);
  window.max_allocated = Number(json, "max_allocated");
  window.max_reserved = Number(json, "max_reserved");
  window.allocated = Number(json, "allocated");
  window.reserved = Number(json, "reserved");
  return window;
}

absl::StatusOr<TruthSnapshot> ParseSnapshot(const Json& json, const std::string& name, const std::string& where) {
  TruthSnapshot snapshot;
  const auto mark = Name(json, "mark");
  if (!mark.has_value()) return Wrong(name, where, "the name of a mark under \"mark\"");
  snapshot.mark = *mark;
  snapshot.device = DeviceOf(json);
  for (const Json& block : ArrayOrEmpty(json, "blocks")) {
    const auto address = block.is_object() ? Number(block, "address") : std::nullopt;
    const auto size = block.is_object() ? Number(block, "size") : std::nullopt;
    if (!address.has_value() || !size.has_value()) return Wrong(name, where, "\"address\" and \"size\" in each block");
    if (Name(block, "state").value_or("active_allocated") != "active_allocated") continue;
    snapshot.blocks.push_back({*address, *size, Number(block, "requested").value_or(0)});
  }
  std::sort(snapshot.blocks.begin(), snapshot.blocks.end(),
            [](const TruthBlock& a, const TruthBlock& b) { return a.address < b.address; });
  if (!json.contains("segments")) return snapshot;
  snapshot.segments.emplace();
  for (const Json& segment : ArrayOrEmpty(json, "segments")) {
    const auto address = segment.is_object() ? Number(segment, "address") : std::nullopt;
    const auto size = segment.is_object() ? Number(segment, "size") : std::nullopt;
    if (!address.has_value() || !size.has_value())
      return Wrong(name, where, "\"address\" and \"size\" in each segment");
    snapshot.segments->push_back({*address, *size});
  }
  std::sort(snapshot.segments->begin(), snapshot.segments->end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  return snapshot;
}

// Collects what differs; says how many there were, and the first few.
class Failures {
 public:
  void Add(std::string text) {
    if (++count_ <= kMaxFailuresShown) shown_.push_back(std::move(text));
  }
  bool empty() const { return count_ == 0; }
  std::string Text() const {
    std::string text = absl::StrJoin(shown_, "; ");
    if (count_ > shown_.size()) absl::StrAppend(&text, "; and ", count_ - shown_.size(), " more");
    return text;
  }

 private:
  std::uint64_t count_ = 0;
  std::vector<std::string> shown_;
};

void CompareFigure(const std::string& where, const char* what, std::optional<std::uint64_t> said,
                   std::uint64_t replayed, std::uint64_t& compared, Failures& failures) {
  if (!said.has_value()) return;
  ++compared;
  if (*said == replayed) return;
  failures.Add(absl::StrCat(where, ": ", what, ": torch says ", *said, ", replayed ", replayed, " (",
                            replayed > *said ? "+" : "-", replayed > *said ? replayed - *said : *said - replayed, ")"));
}

const DeviceAnalysis* FindDevice(const Analysis& analysis, std::int8_t device) {
  for (const DeviceAnalysis& candidate : analysis.devices()) {
    if (candidate.device == device) return &candidate;
  }
  return nullptr;
}

void CheckWindow(const Analysis& analysis, const TruthWindow& truth, std::uint64_t& compared, Failures& failures) {
  const std::string where = absl::StrCat("device ", truth.device, ", \"", truth.from.value_or("(beginning)"),
                                         "\" to \"", truth.to.value_or("(end)"), "\"");
  std::optional<std::uint64_t> from, to;
  if (truth.from.has_value()) {
    from = FindMark(analysis.file(), *truth.from);
    if (!from.has_value()) return failures.Add(absl::StrCat(where, ": the ledger has no mark \"", *truth.from, "\""));
  }
  if (truth.to.has_value()) {
    to = FindMark(analysis.file(), *truth.to, from);
    if (!to.has_value()) {
      return failures.Add(
          absl::StrCat(where, ": the ledger has no mark \"", *truth.to, "\" after the window's beginning"));
    }
  }
  Metric allocated = Metric::kAllocated, reserved = Metric::kReserved;
  if (const DeviceAnalysis* device = FindDevice(analysis, truth.device)) {
    allocated = AllocatedMetric(device->backend);
    reserved = ReservedMetric(device->backend, *analysis.replay().device(truth.device));
  }
  const Window window = analysis.WindowBetween(truth.device, from, to).value_or(Window());
  const auto a = static_cast<std::size_t>(allocated), r = static_cast<std::size_t>(reserved);
  CompareFigure(where, "max_memory_allocated", truth.max_allocated, window.max[a], compared, failures);
  CompareFigure(where, "max_memory_reserved", truth.max_reserved, window.max[r], compared, failures);
  CompareFigure(where, "memory_allocated", truth.allocated, window.at_end[a], compared, failures);
  CompareFigure(where, "memory_reserved", truth.reserved, window.at_end[r], compared, failures);
}

void CompareBlock(const Analysis& analysis, const std::string& where, const TruthBlock& truth, const LiveBlock& live,
                  Failures& failures) {
  if (truth.size != live.bytes) {
    failures.Add(absl::StrCat(where, ": block at ", truth.address, ": torch says ", truth.size, " bytes, replayed ",
                              live.bytes));
  }
  const std::uint64_t requested = analysis.file().slots()[live.slot].As<record::Block>().requested;
  if (truth.requested != 0 && requested != 0 && truth.requested != requested) {
    failures.Add(absl::StrCat(where, ": block at ", truth.address, ": torch says ", truth.requested,
                              " bytes requested, recorded ", requested));
  }
}

void CheckBlocks(const Analysis& analysis, const std::string& where, const TruthSnapshot& truth,
                 const Snapshot& snapshot, Failures& failures) {
  auto live = snapshot.blocks.begin();
  for (const TruthBlock& block : truth.blocks) {
    for (; live != snapshot.blocks.end() && live->address < block.address; ++live) {
      failures.Add(absl::StrCat(where, ": block at ", live->address, " of ", live->bytes, " bytes is not in torch's"));
    }
    if (live == snapshot.blocks.end() || live->address != block.address) {
      failures.Add(absl::StrCat(where, ": torch's block at ", block.address, " of ", block.size, " bytes is missing"));
      continue;
    }
    CompareBlock(analysis, where, block, *live, failures);
    ++live;
  }
  for (; live != snapshot.blocks.end(); ++live) {
    failures.Add(absl::StrCat(where, ": block at ", live->address, " of ", live->bytes, " bytes is not in torch's"));
  }
}

void CheckSegments(const std::string& where, const TruthSnapshot& truth, const Snapshot& snapshot, Failures& failures) {
  if (!truth.segments.has_value()) return;
  const auto& said = *truth.segments;
  const auto same = [](const auto& a, const auto& b) { return a.address == b.address && a.bytes == b.bytes; };
  if (std::equal(said.begin(), said.end(), snapshot.segments.begin(), snapshot.segments.end(), same)) return;
  std::uint64_t said_bytes = 0, replayed_bytes = 0;
  for (const auto& segment : said) said_bytes += segment.bytes;
  for (const auto& segment : snapshot.segments) replayed_bytes += segment.bytes;
  failures.Add(absl::StrCat(where, ": segments: torch says ", said.size(), " of ", said_bytes, " bytes, replayed ",
                            snapshot.segments.size(), " of ", replayed_bytes));
}

}  // namespace

absl::StatusOr<Truth> ParseTruth(absl::string_view json, const std::string& name) {
  const Json root = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) return Wrong(name, "the whole", "a JSON object with \"windows\" and \"snapshots\"");
  Truth truth;
  for (const Json& window : ArrayOrEmpty(root, "windows")) {
    if (!window.is_object()) return Wrong(name, absl::StrCat("windows[", truth.windows.size(), "]"), "an object");
    truth.windows.push_back(ParseWindow(window));
  }
  for (const Json& json_snapshot : ArrayOrEmpty(root, "snapshots")) {
    const std::string where = absl::StrCat("snapshots[", truth.snapshots.size(), "]");
    if (!json_snapshot.is_object()) return Wrong(name, where, "an object");
    auto snapshot = ParseSnapshot(json_snapshot, name, where);
    if (!snapshot.ok()) return snapshot.status();
    truth.snapshots.push_back(*std::move(snapshot));
  }
  return truth;
}

absl::StatusOr<Truth> ReadTruth(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot open"));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return ParseTruth(text, path);
}

Analysis::Options OptionsFor(const format::LedgerFile& file, const Truth& truth) {
  Analysis::Options options;
  for (const TruthSnapshot& snapshot : truth.snapshots) {
    if (const auto slot = FindMark(file, snapshot.mark)) options.snapshots.emplace_back(*slot, snapshot.device);
  }
  return options;
}

std::vector<Identity> CheckTruth(const Analysis& analysis, const Truth& truth) {
  std::vector<Identity> identities;
  if (!truth.windows.empty()) {
    Failures failures;
    std::uint64_t compared = 0;
    for (const TruthWindow& window : truth.windows) CheckWindow(analysis, window, compared, failures);
    identities.push_back({kWindowIdentity, failures.empty(),
                          failures.empty() ? absl::StrCat(compared, " of torch's figures in ", truth.windows.size(),
                                                          " windows, each exactly")
                                           : failures.Text()});
  }
  if (!truth.snapshots.empty()) {
    Failures failures;
    std::uint64_t blocks = 0;
    for (const TruthSnapshot& said : truth.snapshots) {
      const std::string where = absl::StrCat("device ", said.device, " at \"", said.mark, "\"");
      const auto slot = FindMark(analysis.file(), said.mark);
      const Snapshot* snapshot = slot.has_value() ? analysis.SnapshotAt(*slot, said.device) : nullptr;
      if (snapshot == nullptr) {
        failures.Add(absl::StrCat(where, ": the ledger has no such mark"));
        continue;
      }
      blocks += said.blocks.size();
      CheckBlocks(analysis, where, said, *snapshot, failures);
      CheckSegments(where, said, *snapshot, failures);
    }
    identities.push_back({kSnapshotIdentity, failures.empty(),
                          failures.empty() ? absl::StrCat(blocks, " blocks of ", truth.snapshots.size(),
                                                          " torch snapshots, each with its address and size")
                                           : failures.Text()});
  }
  return identities;
}

}  // namespace ledger::replay
