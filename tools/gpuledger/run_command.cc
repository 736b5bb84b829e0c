#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/gpuledger/commands.h"
#include "tools/gpuledger/environment.h"
#include "tools/gpuledger/exit_codes.h"
#include "tools/gpuledger/process.h"
#include "tools/gpuledger/run_directory.h"

namespace gpuledger {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxDevices = 64;
constexpr char kFooter[] =
    R"(The command runs with libledger.so preloaded; each process that uses CUDA leaves a ledger in --out. Nothing else
about it changes: its output is its own, and so is its exit code, which gpuledger passes on (128 + N when signal N
ended it, 127 when there is no such command).

With --sim there need be no GPU: the command sees N simulated devices. Memory and allocations are as on the real ones;
no kernel computes anything (docs/limits.md).

Examples:
  gpuledger run -- torchrun --nproc-per-node 8 train.py
  gpuledger run --out runs/a -- python train.py --steps 3
  gpuledger run --sim 8 --gpu h100-96gb --out runs/dry -- torchrun --nproc-per-node 8 train.py
)";

struct Arguments {
  int simulated = 0;
  std::string gpu = "h100-80gb";
  std::string out = "ledger-run";
  bool force = false;
  std::vector<std::string> command;
};

// Creates the directory of the run. Refuses one with something in it: whose files would they be?
bool PrepareOut(const Arguments& arguments) {
  std::error_code error;
  fs::create_directories(arguments.out, error);
  if (error) {
    std::fprintf(stderr, "gpuledger: %s: cannot create: %s\n", arguments.out.c_str(), error.message().c_str());
    return false;
  }
  if (arguments.force || fs::is_empty(arguments.out, error)) return true;
  std::fprintf(stderr,
               "gpuledger: %s: not empty; choose another --out, or --force to add this run to it (reports take the "
               "newest run)\n",
               arguments.out.c_str());
  return false;
}

void UseStandIns(const Arguments& arguments, const Installation& installation, const Environment& environment,
                 LaunchOptions& options) {
  const auto path = environment.find("PATH");
  const std::string python = InterpreterOf(arguments.command[0], path == environment.end() ? "" : path->second);
  if (python.empty()) return;
  const std::string site_packages(absl::StripAsciiWhitespace(
      OutputOf({python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"})));
  options.stand_ins = StandInsToPreload(installation.simgpu, site_packages);
  if (options.stand_ins.empty()) return;
  std::fprintf(
      stderr,
      "gpuledger: %s/nvidia holds NVIDIA's own libraries, which torch prefers; preloading %zu stand-ins over them\n",
      site_packages.c_str(), options.stand_ins.size());
}

// Letters, digits and underscores alone, because the simulated driver makes a file name of it.
std::string UniqueNodeName() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return absl::StrCat("gpuledger_", getpid(), "_", now);
}

int Run(const Arguments& arguments) {
  if (arguments.command.empty()) {
    std::fprintf(stderr,
                 "gpuledger: nothing to run; put the command behind \"--\": gpuledger run -- python train.py\n");
    return kUsage;
  }
  const auto installation = FindInstallation(arguments.simulated != 0);
  if (!installation.ok()) {
    std::fprintf(stderr, "gpuledger: %s\n", std::string(installation.status().message()).c_str());
    return kUnreadable;
  }
  if (!PrepareOut(arguments)) return kUsage;
  Environment environment = CurrentEnvironment();
  LaunchOptions options;
  std::error_code error;
  options.out = fs::absolute(arguments.out, error).string();
  options.devices = arguments.simulated;
  options.profile = arguments.gpu;
  options.node = UniqueNodeName();
  if (options.devices != 0) UseStandIns(arguments, *installation, environment, options);
  PrepareEnvironment(*installation, options, environment);
  const std::size_t before = CountLedgers(arguments.out);
  const int status = RunProcess(arguments.command, environment);
  // The last process of the node removes its state; killed ones cannot.
  if (options.devices != 0) shm_unlink(absl::StrCat("/simgpu.", options.node).c_str());
  const std::size_t ledgers = CountLedgers(arguments.out) - before;
  if (ledgers == 0) {
    std::fprintf(stderr, "gpuledger: status %d, no ledger in %s: no process made a CUDA call, or LEDGER_OFF is set\n",
                 status, arguments.out.c_str());
    std::error_code ignored;
    fs::remove(arguments.out, ignored);  // only when it is empty
  } else {
    std::fprintf(stderr, "gpuledger: status %d, %zu ledger%s in %s. Next: gpuledger report %s\n", status, ledgers,
                 ledgers == 1 ? "" : "s", arguments.out.c_str(), arguments.out.c_str());
  }
  return status;
}

}  // namespace

void AddRunCommand(CLI::App& app, const std::vector<std::string>& command, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* run = app.add_subcommand(
      "run", "Run a command and record the GPU memory of all its processes: gpuledger run [OPTIONS] -- COMMAND...");
  run->footer(kFooter);
  run->prefix_command();
  run->add_option("--sim", arguments->simulated, "Run on N simulated devices instead of the machine's own")
      ->check(CLI::Range(1, kMaxDevices));
  run->add_option(
         "--gpu", arguments->gpu,
         "What a simulated device is: h100-80gb, h100-96gb, h200-141gb, a100-80gb, l4-24gb, tiny, or a profile's path")
      ->capture_default_str();
  run->add_option("--out", arguments->out, "Directory for the ledgers")->capture_default_str();
  run->add_flag("--force", arguments->force, "Record into a directory that is not empty");
  run->callback([arguments, run, command, &action] {
    arguments->command = run->remaining();
    arguments->command.insert(arguments->command.end(), command.begin(), command.end());
    action = [arguments] { return Run(*arguments); };
  });
}

}  // namespace gpuledger
