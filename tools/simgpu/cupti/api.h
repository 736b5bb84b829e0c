// CUPTI's public header, with its functions kept visible in a project that hides everything else.
#ifndef TOOLS_SIMGPU_CUPTI_API_H_
#define TOOLS_SIMGPU_CUPTI_API_H_

#pragma GCC visibility push(default)
#include <cupti.h>
#pragma GCC visibility pop

#endif  // TOOLS_SIMGPU_CUPTI_API_H_
