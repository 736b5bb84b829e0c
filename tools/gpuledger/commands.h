// The subcommands. Each adds itself to the command line; the function that it leaves in `action` does the work once the
// line is parsed, and returns the exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace gpuledger {

using Action = std::function<int()>;

void AddAdapterCommand(CLI::App& app, Action& action);
void AddDumpCommand(CLI::App& app, Action& action);
void AddReportCommand(CLI::App& app, Action& action);
void AddVerifyCommand(CLI::App& app, Action& action);
// `command` is what stood behind "--".
void AddRunCommand(CLI::App& app, const std::vector<std::string>& command, Action& action);

}  // namespace gpuledger
