// The types of NVTX and of the protocol between an NVTX client and a tool, without the client's code.
#pragma once

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
