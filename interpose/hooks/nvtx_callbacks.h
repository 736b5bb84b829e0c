// The functions that we put into the tables of every NVTX client.
//
// Each records, and then passes the call on to the other tool, if there is one and it wants it. What the application
// gets back (handles, ids, levels) is the other tool's then, and ours otherwise.
#pragma once

#include "interpose/hooks/nvtx_types.h"

namespace ledger::nvtx {

// Puts them into a client's tables.
void InstallCallbacks(NvtxGetExportTableFunc_t get_export_table);

}  // namespace ledger::nvtx
