// Who held the allocated bytes of one device at one instant.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ledger/attribution/attribution.h"
#include "ledger/replay/analysis.h"
#include "ledger/report/model.h"

namespace ledger::report {

// As the user gives it. "peak", "reserved", "device": the high-water marks; "step:3": the peak within a step;
// "phase:backward", "phase:step 3 backward": the highest peak of such phases; "mark:NAME": the program's own mark;
// "12.5": seconds since this rank's ledger was opened.
struct InstantChoice {
  enum class Kind { kAllocatedPeak, kReservedPeak, kDevicePeak, kStep, kPhase, kMark, kTime };
  Kind kind = Kind::kAllocatedPeak;
  std::string name;  // of a phase or mark
  std::uint64_t step = 0;
  std::int64_t time_ns = 0;
  std::string text = "peak";  // as it was given
};

absl::StatusOr<InstantChoice> ParseInstant(absl::string_view text);

// The slot after which to look. Nothing where this rank has no such instant.
std::optional<std::uint64_t> FindInstant(const replay::Analysis& analysis, const attribution::Attribution& attribution,
                                         std::int8_t device, const InstantChoice& choice);

// With every block that was alive.
InstantReport BuildInstant(const replay::Analysis& analysis, const attribution::Attribution& attribution,
                           const replay::DeviceAnalysis& device, std::uint64_t slot);

}  // namespace ledger::report
