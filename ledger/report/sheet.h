// The balance sheets of several ranks as one table: a row for each account, a column for each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ledger/replay/balance.h"

namespace ledger::report {

struct SheetRow {
  std::string name;
  int depth = 0;                     // 0: device used; a row's children follow it, one deeper, and add up to it
  std::vector<std::uint64_t> bytes;  // by column
};

// Rows that are zero everywhere are left out, except context and the unexplained.
std::vector<SheetRow> MakeSheet(const std::vector<const replay::Balance*>& columns);

}  // namespace ledger::report
