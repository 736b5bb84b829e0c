#include <cstdio>
#include <memory>
#include <string>

#include "ledger/report/json.h"
#include "ledger/report/text.h"
#include "tools/gpuledger/commands.h"
#include "tools/gpuledger/exit_codes.h"
#include "tools/gpuledger/load.h"

namespace gpuledger {
namespace {

using ledger::report::Instant;

constexpr char kFooter[] = R"(Examples:
  gpuledger report ledger-run                  as text: peaks, balance sheet, holders, identities
  gpuledger report ledger-run --at device      the balance sheet at the device's peak
  gpuledger report ledger-run --json           everything, in bytes (docs/report.schema.json)
)";

struct Arguments {
  std::string directory, run;
  bool json = false;
  ledger::report::TextOptions text;
};

int Report(const Arguments& arguments) {
  const auto files = FindRun(arguments.directory, arguments.run);
  if (!files.ok()) {
    std::fprintf(stderr, "gpuledger: %s\n", std::string(files.status().message()).c_str());
    return kUnreadable;
  }
  const LoadedRun run = LoadRun(*files, {});
  for (const std::string& what : run.unreadable) std::fprintf(stderr, "gpuledger: %s\n", what.c_str());
  const std::string out =
      arguments.json ? ledger::report::ToJson(run.report) : ledger::report::ToText(run.report, arguments.text);
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (std::fflush(stdout) != 0) return kUnreadable;
  // An identity that fails is in the report; `gpuledger verify` is what fails with it.
  return run.unreadable.empty() ? kOk : kUnreadable;
}

}  // namespace

void AddReportCommand(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("report", "Who held the memory at the peaks of a recorded run");
  command->footer(std::string(kFooter) + "\n" + kExitCodes);
  command->add_option("DIR", arguments->directory, "Directory of a recorded run, or one ledger")->required();
  command->add_flag("--json", arguments->json, "JSON instead of text");
  command->add_option("--run", arguments->run,
                      "Id of the run, where the directory holds several (default: the newest)");
  command->add_option("--at", arguments->text.at, "Instant of the balance sheet: allocated, reserved or device")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Instant>{{"allocated", Instant::kAllocatedPeak},
                                                                         {"reserved", Instant::kReservedPeak},
                                                                         {"device", Instant::kDevicePeak}},
                                          CLI::ignore_case))
      ->default_str("allocated");
  command->add_option("--sites", arguments->text.sites, "How many places of allocation to show")->capture_default_str();
  command->callback([arguments, &action] { action = [arguments] { return Report(*arguments); }; });
}

}  // namespace gpuledger
