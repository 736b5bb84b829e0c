#include "ledger/replay/analysis.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ledger/replay/record_fields.h"

namespace ledger::replay {
namespace {

using format::LedgerFile;

constexpr std::uint64_t kProgressStep = 1 << 18;
constexpr std::size_t kMaxOoms = 8;

HighWater MakeHighWater(const DeviceReplay& device, Metric metric) {
  HighWater high;
  high.peak = device.peaks().RunPeak(metric);
  return high;
}

template <typename Check>
Identity TotalIdentity(const char* name, const char* what, const Analysis& analysis, Check check) {
  Identity identity{name, true, ""};
  std::uint64_t events = 0;
  std::vector<std::string> failures;
  for (const DeviceAnalysis& device : analysis.devices()) {
    const TotalCheck& total = check(*analysis.replay().device(device.device));
    events += total.events;
    if (total.mismatches == 0) continue;
    identity.holds = false;
    failures.push_back(absl::StrCat("device ", device.device, ": ", total.mismatches, " of ", total.events,
                                    " events differ, by up to ", total.largest_difference, " bytes; first at record ",
                                    total.first_slot, " (byte ", analysis.file().OffsetOf(total.first_slot),
                                    "): replayed ", total.first_replayed, ", reported ", total.first_reported));
  }
  identity.detail = identity.holds ? absl::StrCat(what, " = the allocator's own total at each of ", events, " events")
                                   : absl::StrJoin(failures, "; ");
  return identity;
}

Identity LiveSetIdentity(const Analysis& analysis) {
  Identity identity{kLiveSetIdentity, true, ""};
  std::vector<std::string> parts;
  for (const DeviceAnalysis& device : analysis.devices()) {
    std::uint64_t sum = 0;
    for (const Site& site : SitesOf(analysis.file(), device.allocated.snapshot, device.backend)) sum += site.bytes;
    const std::uint64_t peak = device.allocated.peak.bytes;
    if (sum != peak) identity.holds = false;
    parts.push_back(absl::StrCat("device ", device.device, ": live set at the allocated peak ", sum, ", peak ", peak));
  }
  identity.detail = absl::StrJoin(parts, "; ");
  return identity;
}

Identity AccountsIdentity(const Analysis& analysis) {
  Identity identity{kAccountsIdentity, true, ""};
  std::vector<std::string> parts;
  const auto check = [&](const DeviceAnalysis& device, const char* name, const HighWater& high) {
    const Balance& balance = high.balance;
    if (balance.Sum() == balance.used && balance.overdrawn == 0) return;
    identity.holds = false;
    parts.push_back(absl::StrCat("device ", device.device, " at the ", name, " peak: accounts ",
                                 balance.Sum() + balance.overdrawn, ", used ", balance.used));
  };
  for (const DeviceAnalysis& device : analysis.devices()) {
    check(device, "allocated", device.allocated);
    check(device, "reserved", device.reserved);
    check(device, "device", device.used);
  }
  identity.detail =
      identity.holds ? "accounts, with the unexplained line, = device used at every peak" : absl::StrJoin(parts, "; ");
  return identity;
}

}  // namespace

Analysis::Analysis(const LedgerFile& file, const Options& options)
    : file_(file), first_(std::make_unique<Replayer>(file)) {
  ReplayTo(*first_, file.slots().size(), options.progress);
  first_->Finish();
  FindPeaks();
  CollectSnapshots(options);
  DescribePeaks();
}

void Analysis::ReplayTo(Replayer& replayer, std::uint64_t end, std::atomic<std::uint64_t>* progress) const {
  end = std::min<std::uint64_t>(end, file_.slots().size());
  while (replayer.position() < end) {
    const std::uint64_t from = replayer.position();
    replayer.RunTo(std::min(end, from + kProgressStep));
    if (progress != nullptr) progress->fetch_add(replayer.position() - from, std::memory_order_relaxed);
  }
}

void Analysis::FindPeaks() {
  for (const std::int8_t ordinal : first_->Devices()) {
    const DeviceReplay& replay = *first_->device(ordinal);
    DeviceAnalysis device;
    device.device = ordinal;
    device.backend = BackendOf(replay);
    device.used_is_sampled = replay.use().sampled;
    device.allocated = MakeHighWater(replay, AllocatedMetric(device.backend));
    device.reserved = MakeHighWater(replay, ReservedMetric(device.backend, replay));
    device.used = MakeHighWater(replay, UsedMetric(replay));
    devices_.push_back(std::move(device));
  }
  for (const std::uint64_t slot : first_->ooms()) {
    const std::int8_t device = file_.slots()[slot].commit().device;
    if (device >= 0 && ooms_.size() < kMaxOoms) ooms_.push_back({slot, device});
  }
}

void Analysis::CollectSnapshots(const Options& options) {
  for (const auto& wanted : options.snapshots) snapshots_[wanted];
  for (const DeviceAnalysis& device : devices_) {
    for (const HighWater* high : {&device.allocated, &device.reserved, &device.used}) {
      snapshots_[{high->peak.slot, device.device}];
    }
  }
  Replayer second(file_);
  for (auto& [where, snapshot] : snapshots_) {  // in the order of slots
    ReplayTo(second, where.first + 1, nullptr);
    snapshot = second.TakeSnapshot(where.second);
  }
}

void Analysis::DescribePeaks() {
  for (DeviceAnalysis& device : devices_) {
    const DeviceUse& use = first_->device(device.device)->use();
    for (HighWater* high : {&device.allocated, &device.reserved, &device.used}) {
      high->snapshot = snapshots_[{high->peak.slot, device.device}];
      high->balance = MakeBalance(file_, high->snapshot, device.backend, use);
      if (high->peak.slot >= file_.slots().size()) continue;
      high->time_ns = file_.TimeAt(high->peak.slot);
      high->phase = PhaseAt(file_, high->peak.slot);
    }
  }
}

const Snapshot* Analysis::SnapshotAt(std::uint64_t slot, std::int8_t device) const {
  const auto found = snapshots_.find({slot, device});
  return found == snapshots_.end() ? nullptr : &found->second;
}

Balance Analysis::BalanceAt(std::uint64_t slot, const DeviceAnalysis& device) const {
  for (const HighWater* high : {&device.allocated, &device.reserved, &device.used}) {
    if (high->peak.slot == slot) return high->balance;
  }
  Replayer replayer(file_);
  ReplayTo(replayer, slot + 1, nullptr);
  return MakeBalance(file_, replayer.TakeSnapshot(device.device), device.backend, first_->device(device.device)->use());
}

std::optional<Window> Analysis::WindowBetween(std::int8_t device, std::optional<std::uint64_t> from_slot,
                                              std::optional<std::uint64_t> to_slot) const {
  const DeviceReplay* replay = device < 0 ? nullptr : first_->device(device);
  if (replay == nullptr) return std::nullopt;
  Window window;
  bool any = false;
  for (const Interval& interval : replay->peaks().intervals()) {
    // An interval ends at a mark; one that ends at the window's beginning lies before it.
    if (from_slot.has_value() && interval.end_slot <= *from_slot) continue;
    if (to_slot.has_value() && interval.end_slot > *to_slot) break;
    any = true;
    for (std::size_t m = 0; m < kMetricCount; ++m) window.max[m] = std::max(window.max[m], interval.peaks[m].bytes);
    window.at_end = interval.at_end;
  }
  if (!any) return std::nullopt;
  return window;
}

std::vector<Identity> Analysis::Identities() const {
  std::vector<Identity> identities;
  const bool blocks = std::any_of(devices_.begin(), devices_.end(),
                                  [](const DeviceAnalysis& d) { return d.backend == Backend::kBlocks; });
  if (blocks) {
    identities.push_back(TotalIdentity(kAllocatedIdentity, "replayed allocated", *this,
                                       [](const DeviceReplay& d) { return d.allocated_check(); }));
    identities.push_back(TotalIdentity(kReservedIdentity, "replayed reserved", *this,
                                       [](const DeviceReplay& d) { return d.reserved_check(); }));
  }
  if (!devices_.empty()) {
    identities.push_back(LiveSetIdentity(*this));
    identities.push_back(AccountsIdentity(*this));
  }
  return identities;
}

std::optional<std::uint64_t> FindMark(const LedgerFile& file, absl::string_view name,
                                      std::optional<std::uint64_t> after) {
  for (const std::uint64_t slot : file.marks()) {
    if (after.has_value() && slot <= *after) continue;
    if (file.Text(file.slots()[slot].As<record::Range>().text) == name) return slot;
  }
  return std::nullopt;
}

}  // namespace ledger::replay
