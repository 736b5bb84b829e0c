#include "ledger/report/build.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ledger/format/names.h"
#include "ledger/replay/record_fields.h"
#include "ledger/report/build_attribution.h"
#include "ledger/report/build_training.h"
#include "ledger/report/host_sheet.h"

namespace ledger::report {
namespace {

using format::LedgerFile;
using replay::Analysis;
using replay::DeviceAnalysis;
using replay::PhaseAt;

PeakReport BuildPeak(const replay::HighWater& high) {
  return {high.peak.bytes, high.time_ns, high.phase, high.balance};
}

void DescribeDevice(const LedgerFile& file, DeviceReport& device) {
  for (const std::uint64_t slot : file.devices()) {
    if (file.slots()[slot].commit().device != device.device) continue;
    const auto& info = file.slots()[slot].As<record::DeviceInfo>();
    device.name = file.Text(info.name);
    device.total_bytes = info.total_bytes;
    device.simulated = (info.flags & record::kDeviceSimulated) != 0;
  }
}

std::string WhatAt(const LedgerFile& file, std::uint64_t index) {
  const format::Slot& slot = file.slots()[index];
  if (replay::IsAllocation(slot.kind())) {
    const auto& allocation = slot.As<record::Allocation>();
    return absl::StrCat(file.Text(allocation.call), " by ", file.Text(allocation.owner));
  }
  if (slot.kind() == record::Kind::kDeviceSample) return file.Text(slot.As<record::DeviceSample>().why);
  return std::string(format::KindName(slot.kind()));
}

DeviceReport BuildDevice(const Analysis& analysis, const DeviceAnalysis& from) {
  const LedgerFile& file = analysis.file();
  DeviceReport device;
  device.device = from.device;
  DescribeDevice(file, device);
  device.note = replay::BackendNote(from.backend);
  device.peaks = {BuildPeak(from.allocated), BuildPeak(from.reserved), BuildPeak(from.used)};
  device.sites = replay::SitesOf(file, from.allocated.snapshot, from.backend);
  device.requested = replay::RequestedOf(file, from.allocated.snapshot);
  for (const auto& step : analysis.replay().device(from.device)->unexplained_steps()) {
    device.unexplained_steps.push_back({file.TimeAt(step.slot), step.grew_by, step.bytes, WhatAt(file, step.slot)});
  }
  return device;
}

void AddLoss(std::vector<LossReport>& losses, absl::string_view reason, std::uint64_t count,
             absl::string_view meaning) {
  if (count != 0) losses.push_back({std::string(reason), count, std::string(meaning)});
}

std::vector<LossReport> BuildLosses(const Analysis& analysis) {
  const LedgerFile& file = analysis.file();
  std::vector<LossReport> losses;
  for (std::size_t i = 0; i < static_cast<std::size_t>(record::Loss::kCount); ++i) {
    const auto loss = static_cast<record::Loss>(i);
    AddLoss(losses, format::LossName(loss), file.header().losses[i], format::LossMeaning(loss));
  }
  const format::ReadCounts& counts = file.counts();
  AddLoss(losses, "uncommitted", counts.uncommitted, "records that were being written when the process ended");
  AddLoss(losses, "cut_off", counts.cut_off, "records behind the end of the file; the copy is not complete");
  AddLoss(losses, "unknown_kind", counts.unknown_kind, "records of a kind that only a newer gpuledger knows");
  AddLoss(losses, "malformed", counts.malformed, "definitions that contradict the format");
  AddLoss(losses, "incomplete_text", counts.incomplete_texts, "names of which a piece is missing");
  const replay::Anomalies& anomalies = analysis.replay().anomalies();
  AddLoss(losses, "unknown_free", anomalies.unknown_frees, "frees of driver memory that was never seen");
  AddLoss(losses, "double_alloc", anomalies.double_allocs, "driver memory at an address whose free was not seen");
  AddLoss(losses, "unknown_block_free", anomalies.unknown_block_frees, "frees of blocks that were never seen");
  AddLoss(losses, "double_block", anomalies.double_blocks, "blocks at an address whose free was not seen");
  AddLoss(losses, "block_size_change", anomalies.block_size_changes, "blocks freed with another size than they had");
  AddLoss(losses, "implausible", anomalies.implausible, "events with a size or device that cannot be; left out");
  AddLoss(losses, "paused", analysis.replay().pauses(), "times that the program paused the recorder");
  return losses;
}

std::vector<std::pair<std::string, std::string>> BuildSettings(const LedgerFile& file) {
  std::map<std::string, std::string> settings;
  for (const std::uint64_t slot : file.settings()) {
    const auto& setting = file.slots()[slot].As<record::Setting>();
    settings[file.Text(setting.key)] = file.Text(setting.value);
  }
  return {settings.begin(), settings.end()};
}

ValueReads BuildValueReads(const LedgerFile& file) {
  std::map<std::string, std::uint64_t> places;
  for (const std::uint64_t slot : file.value_reads())
    ++places[file.Text(file.slots()[slot].As<record::ValueRead>().text)];
  ValueReads reads;
  reads.count = file.value_reads().size();
  reads.places.assign(places.begin(), places.end());
  std::stable_sort(reads.places.begin(), reads.places.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return reads;
}

// What the device had when the allocator gave up. The allocator's own call does not say it; the op adapter asks right
// after.
const record::DeviceSample* SampleOf(const LedgerFile& file, const replay::OomEvent& oom) {
  constexpr std::uint64_t kNear = 64;  // slots; other threads may have written in between
  const auto slots = file.slots();
  const std::uint64_t end = std::min<std::uint64_t>(slots.size(), oom.slot + kNear);
  for (std::uint64_t slot = oom.slot + 1; slot < end; ++slot) {
    if (!slots[slot].committed() || slots[slot].kind() != record::Kind::kDeviceSample) continue;
    const auto& sample = slots[slot].As<record::DeviceSample>();
    if (sample.commit.device == oom.device && file.Text(sample.why) == record::kSampledOutOfMemory) return &sample;
  }
  return nullptr;
}

OomReport BuildOom(const LedgerFile& file, const replay::OomEvent& event) {
  const auto& oom = file.slots()[event.slot].As<record::BlockOom>();
  OomReport report;
  report.time_ns = file.TimeAt(event.slot);
  report.device = event.device;
  report.requested = oom.requested;
  report.allocated = oom.allocated;
  report.reserved = oom.reserved_total;
  report.device_free = oom.device_free;
  report.device_total = oom.device_total;
  report.phase = PhaseAt(file, event.slot);
  if (const record::DeviceSample* const sample = SampleOf(file, event); sample != nullptr && oom.device_total == 0) {
    report.device_free = sample->free_bytes;
    report.device_total = sample->total_bytes;
  }
  return report;
}

FailureReport BuildFailure(const LedgerFile& file, std::uint64_t slot) {
  const auto& failure = file.slots()[slot].As<record::Allocation>();
  return {file.TimeAt(slot),        failure.commit.device, failure.size,  file.Text(failure.call),
          file.Text(failure.owner), PhaseAt(file, slot),   failure.result};
}

std::int64_t Duration(const LedgerFile& file) {
  const std::uint64_t end = file.header().end_ticks;
  if (file.clean_end() && end != 0) return file.clock().SinceOpenNs(end);
  for (std::uint64_t slot = file.slots().size(); slot-- > 0;) {
    const format::Slot& last = file.slots()[slot];
    if (last.committed() && last.kind() != record::Kind::kText) return file.TimeAt(slot);
  }
  return 0;
}

// The one that was asked for, where the rank uses it; or else the one with the highest allocated peak.
std::size_t MainDevice(const std::vector<DeviceReport>& devices, std::optional<int> wanted) {
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const DeviceReport& device) { return device.device == wanted; });
  if (found != devices.end()) return static_cast<std::size_t>(found - devices.begin());
  const auto highest = std::max_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return std::tie(a.peaks.allocated.bytes, a.peaks.device.bytes) <
           std::tie(b.peaks.allocated.bytes, b.peaks.device.bytes);
  });
  return static_cast<std::size_t>(highest - devices.begin());
}

void ShiftInstant(InstantReport& instant, std::int64_t by) {
  instant.time_ns += by;
  for (CategoryReport& category : instant.categories) category.max_time_ns += by;
  for (BlockReport& block : instant.blocks) {
    block.born_ns += by;
    if (block.freed_ns >= 0) block.freed_ns += by;
  }
}

void ShiftTimes(RankReport& rank, std::int64_t by) {
  for (DeviceReport& device : rank.devices) {
    for (PeakReport* peak : {&device.peaks.allocated, &device.peaks.reserved, &device.peaks.device})
      peak->time_ns += by;
    for (UnexplainedReport& step : device.unexplained_steps) step.time_ns += by;
    ShiftInstant(device.at_peak, by);
    ShiftInstant(device.at, by);
  }
  for (OomReport& oom : rank.ooms) oom.time_ns += by;
  for (FailureReport& failure : rank.failures) failure.time_ns += by;
  ShiftTraining(rank, by);
}

}  // namespace

const DeviceReport* RankReport::main_device() const { return main < devices.size() ? &devices[main] : nullptr; }

const InstantReport& RankReport::at_peak() const {
  static const InstantReport kNone;
  return main_device() == nullptr ? kNone : main_device()->at_peak;
}

bool RunReport::exact() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankReport& rank) { return rank.exact(); });
}

bool RunReport::identities_hold() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const RankReport& r) { return replay::AllHold(r.identities); });
}

bool RunReport::simulated() const {
  for (const RankReport& rank : ranks) {
    for (const DeviceReport& device : rank.devices) {
      if (device.simulated) return true;
    }
  }
  return false;
}

RankReport BuildRank(const Analysis& analysis, const BuildOptions& options) {
  const LedgerFile& file = analysis.file();
  RankReport rank;
  rank.rank = file.header().rank;
  rank.local_rank = file.header().local_rank;
  rank.world_size = file.header().world_size;
  rank.pid = file.header().pid;
  rank.file = file.path();
  rank.host = file.host();
  rank.program = file.program();
  rank.run_id = file.run_id();
  rank.recorder_version = file.recorder_version();
  rank.clean_end = file.clean_end();
  rank.events = file.counts().committed;
  rank.open_realtime_ns = file.clock().open_realtime_ns();
  rank.duration_ns = Duration(file);
  rank.settings = BuildSettings(file);
  rank.losses = BuildLosses(analysis);
  rank.value_reads = BuildValueReads(file);
  for (const DeviceAnalysis& device : analysis.devices()) rank.devices.push_back(BuildDevice(analysis, device));
  rank.main = MainDevice(rank.devices, options.device);
  const replay::HostBytes& host = analysis.replay().host_peaks();
  rank.host_sheet = {host.pinned, host.registered, host.managed, file.header().recorder_peak_rss_bytes, {}};
  if (host.pinned + host.registered + host.managed != 0) rank.host_sheet.sheet = BuildHostSheet(file);
  for (const replay::OomEvent& oom : analysis.ooms()) rank.ooms.push_back(BuildOom(file, oom));
  rank.oom_count = analysis.replay().oom_count();
  for (const std::uint64_t slot : analysis.replay().failures()) rank.failures.push_back(BuildFailure(file, slot));
  rank.failure_count = analysis.replay().failure_count();
  rank.identities = analysis.Identities();
  Attribute(analysis, options, rank);
  rank.identities.insert(rank.identities.end(), options.more.begin(), options.more.end());
  return rank;
}

RunReport BuildRun(std::vector<RankReport> ranks) {
  RunReport run;
  run.ranks = std::move(ranks);
  std::stable_sort(run.ranks.begin(), run.ranks.end(), [](const RankReport& a, const RankReport& b) {
    return std::tie(a.rank, a.pid) < std::tie(b.rank, b.pid);
  });
  if (run.ranks.empty()) return run;
  run.start_realtime_ns = run.ranks.front().open_realtime_ns;
  for (const RankReport& rank : run.ranks)
    run.start_realtime_ns = std::min(run.start_realtime_ns, rank.open_realtime_ns);
  for (RankReport& rank : run.ranks) ShiftTimes(rank, rank.open_realtime_ns - run.start_realtime_ns);
  run.model_state = SummarizeModel(run.ranks);
  return run;
}

}  // namespace ledger::report
