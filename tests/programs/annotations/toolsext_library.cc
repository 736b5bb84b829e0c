// Stands for libnvToolsExt.so.1: a library that exports NVTX's functions. Compiled twice: with a tool's way in, and
// without, as a library that nobody can attach to.
#define NVTX_EXPORT_API
#include <nvtx3/nvToolsExt.h>
