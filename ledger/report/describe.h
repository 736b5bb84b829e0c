// One record as named fields, for `gpuledger dump`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "ledger/format/ledger_file.h"

namespace ledger::report {

// "      12     0.003412  dev 0  thread 1  block_alloc  address=0x7f... size=512 ...".
std::string DescribeText(const format::LedgerFile& file, std::uint64_t slot);

// {"record": 12, "time_ns": 3412000, "kind": "block_alloc", "device": 0, "thread": 1, "layer": "allocator",
//  "address": 140187..., "size": 512, ...}: one line, without its end. Times are since the ledger was opened.
std::string DescribeJson(const format::LedgerFile& file, std::uint64_t slot);

}  // namespace ledger::report
