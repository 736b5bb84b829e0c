// The report for people.
#pragma once

#include <optional>
#include <string>

#include "ledger/report/model.h"
#include "ledger/report/text_holders.h"

namespace ledger::report {

struct TextOptions {
  HoldersOptions holders;
  std::optional<int> rank;  // whose memory is described in detail; the one with the highest peak unless set
};

std::string ToText(const RunReport& run, const TextOptions& options);

// The identities alone, one line each, those that fail with their detail per rank; for `gpuledger verify`, too.
std::string IdentitiesText(const RunReport& run, bool every_rank);

}  // namespace ledger::report
