// The report for people.
#pragma once

#include <cstddef>
#include <string>

#include "ledger/report/model.h"

namespace ledger::report {

enum class Instant { kAllocatedPeak, kReservedPeak, kDevicePeak };

struct TextOptions {
  Instant at = Instant::kAllocatedPeak;  // the instant of the balance sheet
  std::size_t sites = 10;
};

std::string ToText(const RunReport& run, const TextOptions& options);

// The identities alone, one line each, those that fail with their detail per rank; for `gpuledger verify`, too.
std::string IdentitiesText(const RunReport& run, bool every_rank);

}  // namespace ledger::report
