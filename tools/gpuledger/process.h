// A child process that stands in our place: signals go on to it, its status comes back.
#pragma once

#include <string>
#include <vector>

#include "tools/gpuledger/environment.h"

namespace gpuledger {

// Runs the command to its end. Returns its exit status, 128 + N when signal N ended it, kNotFound or kCannotRun when it
// could not be started (said on stderr).
int RunProcess(const std::vector<std::string>& command, const Environment& environment);

// What a command prints on stdout, at most a few KiB; "" when it fails.
std::string OutputOf(const std::vector<std::string>& command);

Environment CurrentEnvironment();

}  // namespace gpuledger
