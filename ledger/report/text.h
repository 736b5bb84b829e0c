// The report for people.
#pragma once

#include <optional>
#include <string>

#include "ledger/report/model.h"
#include "ledger/report/text_holders.h"

namespace ledger::report {

struct TextOptions {
  HoldersOptions holders;
  // Whose memory is described in detail: of a rank, the one with the highest peak unless set; and of those ranks alone
  // whose main device this is, where one was asked for.
  std::optional<int> rank, device;
};

std::string ToText(const RunReport& run, const TextOptions& options);

// The identities alone, one line each, those that fail with their detail per rank; for `gpuledger verify`, too.
std::string IdentitiesText(const RunReport& run, bool every_rank);

}  // namespace ledger::report
