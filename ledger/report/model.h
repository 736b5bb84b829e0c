// What a report says, as plain values: text, JSON and later forms are made from this, and from nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ledger/attribution/category.h"
#include "ledger/attribution/lives.h"
#include "ledger/replay/balance.h"
#include "ledger/replay/identity.h"
#include "ledger/report/training_model.h"

namespace ledger::report {

struct PeakReport {
  std::uint64_t bytes = 0;
  std::int64_t time_ns = 0;  // since the run began, that is, since its first rank opened its ledger
  std::string phase;         // path of ranges; "" outside of any
  replay::Balance balance;
};

struct PeaksReport {
  PeakReport allocated, reserved, device;
};

struct UnexplainedReport {
  std::int64_t time_ns = 0;
  std::uint64_t grew_by = 0;
  std::uint64_t bytes = 0;
  std::string what;  // the call after which it showed
};

// A live block.
struct BlockReport {
  std::uint64_t slot = 0;  // of its allocation
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t requested = 0;  // 0: not known
  attribution::Category category = attribution::Category::kUnknown;
  attribution::Evidence evidence = attribution::Evidence::kNone;
  std::string role, name, member, module, op, scope, owner;  // "": none
  std::string process_group;                                 // whose collective the role is of; "": none, or not known
  std::string phase;                                         // in which it was allocated
  std::int64_t born_ns = 0, freed_ns = -1;                   // -1: never
};

struct MemberReport {
  std::string name;
  std::uint64_t bytes = 0, blocks = 0;
};

struct CategoryReport {
  attribution::Category category = attribution::Category::kUnknown;
  std::uint64_t bytes = 0, blocks = 0;
  std::uint64_t requested = 0, rounded = 0;  // of blocks whose requested bytes are known: those, and their block bytes
  std::uint64_t max_bytes = 0;               // the largest it ever was
  std::int64_t max_time_ns = 0;
  std::array<std::uint64_t, attribution::kEvidenceCount> evidence{};  // bytes
  std::vector<MemberReport> members;                                  // largest first
};

struct ModuleReport {
  std::string name;  // "" for what belongs to no module
  std::uint64_t bytes = 0;
  std::array<std::uint64_t, attribution::kCategoryCount> categories{};
};

// Who held a device's memory at one instant.
struct InstantReport {
  bool known = false;  // false: there is no such instant on this rank
  int device = 0;
  std::uint64_t bytes = 0;  // Σ live blocks
  std::int64_t time_ns = 0;
  std::string phase;
  std::uint64_t step = 0;
  std::vector<CategoryReport> categories;  // all of them, by their order
  std::uint64_t sum_of_maxima = 0;         // what a budget of category maxima adds up to
  replay::Balance balance;
  std::vector<ModuleReport> modules;  // largest first
  std::vector<BlockReport> blocks;    // by the order of allocation
};

struct DeviceReport {
  int device = 0;
  std::string name;
  std::uint64_t total_bytes = 0;  // 0: not known
  bool simulated = false;
  std::string note;  // how the peaks were derived where that is not the normal way
  PeaksReport peaks;
  std::vector<replay::Site> sites;  // of the allocated peak, all of them, largest first
  replay::RequestedBytes requested;
  std::vector<UnexplainedReport> unexplained_steps;
  InstantReport at_peak;  // the allocated one
  InstantReport at;       // the one that was asked for
};

// One phase of one step, on one device.
struct PhaseReport {
  std::string name;  // "backward"
  std::uint64_t step = 0;
  bool in_step = false;
  std::int64_t start_ns = 0, end_ns = 0, peak_time_ns = 0;
  std::uint64_t begin_bytes = 0, peak_bytes = 0, end_bytes = 0;
  std::array<std::uint64_t, attribution::kCategoryCount> at_peak{}, at_end{};
};

struct LossReport {
  std::string reason;
  std::uint64_t count = 0;
  std::string meaning;
};

struct OomReport {
  std::int64_t time_ns = 0;
  int device = 0;
  std::uint64_t requested = 0, allocated = 0, reserved = 0, device_free = 0, device_total = 0;
  std::string phase;
  std::vector<HolderReport> holders;  // the largest
  std::uint64_t holder_count = 0;     // of all
  std::uint64_t held_at_end = 0;      // bytes of what was alive then, and still when the ledger ended
};

struct FailureReport {
  std::int64_t time_ns = 0;
  int device = 0;
  std::uint64_t bytes = 0;
  std::string call, owner, phase;
  int result = 0;
};

struct HostReport {
  std::uint64_t pinned_peak = 0, registered_peak = 0, managed_peak = 0;
  std::uint64_t recorder_peak_rss = 0;
  HostSheetReport sheet;
};

struct ValueReads {
  std::uint64_t count = 0;
  std::vector<std::pair<std::string, std::uint64_t>> places;  // most frequent first
};

struct RankReport {
  int rank = 0, local_rank = 0, world_size = 0;
  std::uint32_t pid = 0;
  std::string file, host, program, run_id, recorder_version;
  bool clean_end = false;
  std::uint64_t events = 0;
  std::int64_t open_realtime_ns = 0;
  std::int64_t duration_ns = 0;
  std::vector<std::pair<std::string, std::string>> settings;  // by key
  std::vector<LossReport> losses;
  ValueReads value_reads;
  std::vector<DeviceReport> devices;
  HostReport host_sheet;
  std::vector<OomReport> ooms;
  std::uint64_t oom_count = 0;
  std::vector<FailureReport> failures;
  std::uint64_t failure_count = 0;
  std::vector<replay::Identity> identities;
  attribution::Unplaced unplaced;
  std::string at_name;   // as an instant was asked for; "" unless one was
  std::size_t main = 0;  // position in `devices`
  // Of main_device():
  std::vector<PhaseReport> phases;
  bool phases_inferred = false;  // no agent told them
  std::vector<attribution::Communication> communication;
  std::vector<CommunicatorReport> communicators;
  GatheredReport gathered;
  ModelStateReport model_state;
  std::vector<attribution::Growth> growth;

  // The device that is described in full. Null when the rank used none.
  const DeviceReport* main_device() const;
  const InstantReport& at_peak() const;  // its
  bool exact() const { return losses.empty(); }
};

struct RunReport {
  std::vector<RankReport> ranks;  // by rank, then pid
  std::int64_t start_realtime_ns = 0;
  ModelSummary model_state;
  std::vector<std::string> notes;  // of the tool that collected the ranks

  bool exact() const;
  bool identities_hold() const;
  bool simulated() const;
};

}  // namespace ledger::report
