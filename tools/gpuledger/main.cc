// gpuledger: records GPU memory of training jobs, and says who held it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "tools/gpuledger/commands.h"
#include "tools/gpuledger/exit_codes.h"

namespace {

constexpr char kFooter[] = R"(Examples:
  gpuledger run -- torchrun --nproc-per-node 8 train.py        record all ranks into ./ledger-run
  gpuledger run --sim 8 --gpu h100-80gb -- torchrun --nproc-per-node 8 train.py
                                                               the same without a GPU
  gpuledger report ledger-run                                  who held the memory at the peak
  gpuledger verify ledger-run                                  does it all add up, to the byte
  gpuledger dump ledger-run/rank0.pid4711.ledger --limit 20    the records themselves
)";

}  // namespace

int main(int argc, char** argv) {
  // What stands behind "--" belongs to the command that is run, not to us.
  char** const end = argv + argc;
  char** const separator = std::find_if(argv, end, [](const char* arg) { return std::strcmp(arg, "--") == 0; });
  const std::vector<std::string> command(separator == end ? end : separator + 1, end);

  CLI::App app("Records the GPU memory of training jobs as ledgers, replays them, and says who held the bytes.");
  app.name("gpuledger");
  app.footer(std::string(kFooter) + "\n" + gpuledger::kExitCodes);
  app.set_version_flag("--version", GPULEDGER_VERSION);
  app.require_subcommand(1);
  gpuledger::Action action;
  gpuledger::AddRunCommand(app, command, action);
  gpuledger::AddReportCommand(app, action);
  gpuledger::AddVerifyCommand(app, action);
  gpuledger::AddDumpCommand(app, action);
  gpuledger::AddAdapterCommand(app, action);
  try {
    app.parse(static_cast<int>(separator - argv), argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" with code 0 here.
    return app.exit(error) == 0 ? gpuledger::kOk : gpuledger::kUsage;
  }
  return action();
}
