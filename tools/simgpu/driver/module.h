// Images of code (modules and libraries), their functions and variables.
//
// An image is never read as code: any name is a function of it. A function costs device memory for its code when it is
// first used in a context, as with lazy loading in life; how much is assumed (profile: module.bytes_per_function).
#pragma once

#include <cstdint>
#include <string>

#include "tools/simgpu/driver/context.h"

namespace simgpu {

// The name of the function behind a CUfunction or a CUkernel; "?" for an unknown handle. With the lock held. The text
// lives as long as the process.
const char* FunctionName(CUfunction function);
// The function is about to run: its code is loaded. With the lock held.
CUresult UseFunction(CUfunction function, Context* context);
// Sizes of variables that the images themselves cannot be asked for.
CUresult DeclareGlobal(const void* image, const char* name, std::size_t bytes);

}  // namespace simgpu
