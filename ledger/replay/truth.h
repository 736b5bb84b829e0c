// What PyTorch itself said about a run, set against the replay of its ledger.
//
// A script that runs under the recorder writes `rank{R}.pid{P}.truth.json` beside its ledger:
//
//   {"windows":   [{"from": "mark"|null, "to": "mark"|null, "device": 0, "max_allocated": B, "max_reserved": B,
//                   "allocated": B, "reserved": B}],
//    "snapshots": [{"mark": "name", "device": 0,
//                   "blocks":   [{"address": A, "size": S, "requested": R, "state": "active_allocated"}],
//                   "segments": [{"address": A, "size": S}]}]}
//
// A mark is one that the script made (ledger_mark) at that very instant; null is the beginning, or the end. Any of the
// four figures of a window may be left out, and `segments` of a snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ledger/replay/analysis.h"
#include "ledger/replay/identity.h"

namespace ledger::replay {

struct TruthWindow {
  std::optional<std::string> from, to;
  std::int8_t device = 0;
  std::optional<std::uint64_t> max_allocated, max_reserved, allocated, reserved;
};

struct TruthBlock {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t requested = 0;  // 0: not said
};

struct TruthSnapshot {
  std::string mark;
  std::int8_t device = 0;
  std::vector<TruthBlock> blocks;  // only those that are allocated, by address
  std::optional<std::vector<Snapshot::Segment>> segments;
};

struct Truth {
  std::vector<TruthWindow> windows;
  std::vector<TruthSnapshot> snapshots;
};

// `name` stands in messages for the file.
absl::StatusOr<Truth> ParseTruth(absl::string_view json, const std::string& name);
absl::StatusOr<Truth> ReadTruth(const std::string& path);

// The live sets that CheckTruth will need.
Analysis::Options OptionsFor(const format::LedgerFile& file, const Truth& truth);

// kWindowIdentity and kSnapshotIdentity, each if the truth speaks of it.
std::vector<Identity> CheckTruth(const Analysis& analysis, const Truth& truth);

}  // namespace ledger::replay
