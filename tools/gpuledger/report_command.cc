#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "ledger/report/json.h"
#include "ledger/report/text.h"
#include "tools/gpuledger/commands.h"
#include "tools/gpuledger/exit_codes.h"
#include "tools/gpuledger/load.h"

namespace gpuledger {
namespace {

constexpr char kFooter[] = R"(Examples:
  gpuledger report ledger-run                       as text: peaks, who held them, balance sheet, identities
  gpuledger report ledger-run --rank 3 --by module  rank 3, by module
  gpuledger report ledger-run --rank 0 --device 1   the second device of a process that uses several
  gpuledger report ledger-run --at "phase:forward"  at the highest instant of any forward pass
  gpuledger report ledger-run --at step:2           at the peak of step 2
  gpuledger report ledger-run --json                everything, in bytes (docs/report.schema.json)
)";

using ledger::report::GroupBy;

struct Arguments {
  std::string directory, run;
  bool json = false;
  std::string at;
  ledger::report::JsonOptions json_options;
  ledger::report::TextOptions text;
};

// What was asked for and isn't there; "" when everything is.
std::string Unanswerable(const ledger::report::RunReport& run, const Arguments& arguments) {
  const auto any = [&run](auto predicate) { return std::any_of(run.ranks.begin(), run.ranks.end(), predicate); };
  using ledger::report::RankReport;
  const auto wanted = arguments.text.rank;
  if (wanted && !any([&](const RankReport& rank) { return rank.rank == *wanted; })) {
    return absl::StrCat("--rank: the run has no rank ", *wanted, "; it has ", run.ranks.size(), " from ",
                        run.ranks.empty() ? 0 : run.ranks.front().rank);
  }
  const auto describes = [&](const RankReport& rank) {
    const auto* const main = rank.main_device();
    if (main == nullptr || rank.rank != wanted.value_or(rank.rank)) return false;
    return main->device == arguments.text.device.value_or(main->device);
  };
  if (arguments.text.device && !any(describes)) {
    return absl::StrCat("--device: ", wanted ? absl::StrCat("rank ", *wanted, " did not use") : "no rank used",
                        " device ", *arguments.text.device, "; the report's table of peaks lists the devices of each");
  }
  if (!arguments.at.empty() &&
      !any([](const RankReport& rank) { return rank.main_device() != nullptr && rank.main_device()->at.known; })) {
    return absl::StrCat("--at: no rank has the instant '", arguments.at,
                        "'; --json lists phases and steps, `gpuledger dump` marks");
  }
  return "";
}

int Report(const Arguments& arguments) {
  const auto files = FindRun(arguments.directory, arguments.run);
  if (!files.ok()) {
    std::fprintf(stderr, "gpuledger: %s\n", std::string(files.status().message()).c_str());
    return kUnreadable;
  }
  LoadOptions options;
  options.device = arguments.text.device;
  if (!arguments.at.empty()) {
    const auto at = ledger::report::ParseInstant(arguments.at);
    if (!at.ok()) {
      std::fprintf(stderr, "gpuledger: --at: %s\n", std::string(at.status().message()).c_str());
      return kUsage;
    }
    options.at = *at;
  }
  const LoadedRun run = LoadRun(*files, options);
  if (const std::string complaint = Unanswerable(run.report, arguments); !complaint.empty()) {
    std::fprintf(stderr, "gpuledger: %s\n", complaint.c_str());
    return kUsage;
  }
  for (const std::string& what : run.unreadable) std::fprintf(stderr, "gpuledger: %s\n", what.c_str());
  const std::string out = arguments.json ? ledger::report::ToJson(run.report, arguments.json_options)
                                         : ledger::report::ToText(run.report, arguments.text);
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
  command->add_flag("--blocks", arguments->json_options.blocks, "With --json: every block that was alive");
  command->add_option("--at", arguments->at,
                      "Another instant to describe: reserved, device (their peaks), step:N, phase:NAME, mark:NAME, "
                      "or seconds since the start");
  command->add_option("--rank", arguments->text.rank, "Whose memory to describe in detail (default: the highest peak)");
  command->add_option("--device", arguments->text.device,
                      "Which device of a rank that uses several to describe in full (default: the highest peak)");
  command->add_option("--by", arguments->text.holders.by, "Group live memory by category, module, op, site or owner")
      ->transform(CLI::CheckedTransformer(std::map<std::string, GroupBy>{{"category", GroupBy::kCategory},
                                                                         {"module", GroupBy::kModule},
                                                                         {"op", GroupBy::kOp},
                                                                         {"site", GroupBy::kSite},
                                                                         {"owner", GroupBy::kOwner}},
                                          CLI::ignore_case))
      ->default_str("category");
  command->add_option("--limit", arguments->text.holders.limit, "How many groups and members to show")
      ->capture_default_str();
  command->callback([arguments, &action] { action = [arguments] { return Report(*arguments); }; });
}

}  // namespace gpuledger
