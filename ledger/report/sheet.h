// The balance sheets of several ranks as one table: a row for each account, a column for each rank.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ledger/replay/balance.h"
#include "ledger/report/model.h"

namespace ledger::report {

struct SheetRow {
  std::string name;
  int depth = 0;                     // 0: device used; a row's children follow it, one deeper, and add up to it
  std::vector<std::uint64_t> bytes;  // by column
};

// Rows that are zero everywhere are left out, except context and the unexplained.
std::vector<SheetRow> MakeSheet(const std::vector<const InstantReport*>& columns);

// The accounts of a balance sheet by the names that the JSON report uses; they add up to what is used.
std::vector<std::pair<std::string, std::uint64_t>> AccountsOf(const replay::Balance& balance);

}  // namespace ledger::report
