// The exit codes of every subcommand; `gpuledger run` passes on those of the command that it runs.
#pragma once

namespace gpuledger {

inline constexpr int kOk = 0;
inline constexpr int kMismatch = 1;     // an identity does not hold
inline constexpr int kUsage = 2;        // the command line
inline constexpr int kUnreadable = 3;   // an input is missing or is not what it should be
inline constexpr int kCannotRun = 126;  // run: the command could not be started ...
inline constexpr int kNotFound = 127;   // ... or not even found

inline constexpr char kExitCodes[] =
    "Exit codes: 0 fine, 1 an identity does not hold, 2 wrong command line, 3 an input is missing or unreadable.";

}  // namespace gpuledger
