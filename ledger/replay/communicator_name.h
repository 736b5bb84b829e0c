// What a report calls a communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ledger/format/ledger_file.h"

namespace ledger::replay {

// By handle or token, as CommunicatorTable::Find has it: "communicator 0 "tp", 8 ranks".
std::string CommunicatorName(const format::LedgerFile& file, std::uint64_t context, std::uint64_t slot);
// The same by position. The name is that of the process group, where the framework said it, or else NCCL's.
std::string CommunicatorName(const format::LedgerFile& file, std::size_t position);

// What its process group is called; "" where nobody said it.
std::string ProcessGroupName(const format::LedgerFile& file, std::size_t position);

// Which ranks of the job the process group has: "0-7", "1-13 by 4", "3"; "" where nobody said it.
std::string ProcessGroupRanks(const format::LedgerFile& file, std::size_t position);

}  // namespace ledger::replay
