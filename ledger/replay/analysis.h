// One ledger, replayed twice: once for the high-water marks, once more up to them for the complete live sets.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "ledger/format/ledger_file.h"
#include "ledger/replay/balance.h"
#include "ledger/replay/identity.h"
#include "ledger/replay/replayer.h"

namespace ledger::replay {

// One high-water mark and what was alive then.
struct HighWater {
  Peak peak;
  std::int64_t time_ns = 0;  // since the ledger was opened
  std::string phase;         // as PhaseAt() has it
  Snapshot snapshot;
  Balance balance;
};

struct OomEvent {
  std::uint64_t slot = 0;
  std::int8_t device = 0;
};

struct DeviceAnalysis {
  std::int8_t device = 0;
  Backend backend = Backend::kNone;
  HighWater allocated, reserved, used;
  bool used_is_sampled = false;
};

struct Window {
  Values max{};
  Values at_end{};
};

class Analysis {
 public:
  struct Options {
    // Live sets wanted besides those at the peaks: slots of marks, with the device.
    std::vector<std::pair<std::uint64_t, std::int8_t>> snapshots;
    // Grows by the records that were replayed; for a progress line.
    std::atomic<std::uint64_t>* progress = nullptr;
  };

  // `file` must outlive the analysis.
  Analysis(const format::LedgerFile& file, const Options& options);

  const format::LedgerFile& file() const { return file_; }
  const Replayer& replay() const { return *first_; }
  const std::vector<DeviceAnalysis>& devices() const { return devices_; }
  const std::vector<OomEvent>& ooms() const { return ooms_; }

  // Null when it was not asked for.
  const Snapshot* SnapshotAt(std::uint64_t slot, std::int8_t device) const;

  // The balance sheet right after an event: replays up to there.
  Balance BalanceAt(std::uint64_t slot, const DeviceAnalysis& device) const;

  // Between two instants that lie on marks (or the beginning and the end). Nothing when the device had no event by
  // then.
  std::optional<Window> WindowBetween(std::int8_t device, std::optional<std::uint64_t> from_slot,
                                      std::optional<std::uint64_t> to_slot) const;

  // Those that the ledger can check by itself.
  std::vector<Identity> Identities() const;

 private:
  void ReplayTo(Replayer& replayer, std::uint64_t end, std::atomic<std::uint64_t>* progress) const;
  void FindPeaks();
  void CollectSnapshots(const Options& options);
  void DescribePeaks();

  const format::LedgerFile& file_;
  std::unique_ptr<Replayer> first_;
  std::vector<DeviceAnalysis> devices_;
  std::vector<OomEvent> ooms_;
  std::map<std::pair<std::uint64_t, std::int8_t>, Snapshot> snapshots_;
};

// The slot of the first mark of that name after `after` (any, when nothing is given).
std::optional<std::uint64_t> FindMark(const format::LedgerFile& file, absl::string_view name,
                                      std::optional<std::uint64_t> after = std::nullopt);

}  // namespace ledger::replay
