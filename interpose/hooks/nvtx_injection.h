// The entry points by which NVTX clients hand us their tables of functions: once for each library that uses NVTX.
#pragma once

#include "interpose/hooks/nvtx_types.h"

extern "C" {
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_export_table);  // NVTX 3, compiled into the library itself
int InitializeInjectionNvtx(NvtxGetExportTableFunc_t get_export_table);   // NVTX 2, libnvToolsExt.so.1
int InitializeInjectionNvtxExtension(void* module_info);                  // payload, counter and memory extensions
}
