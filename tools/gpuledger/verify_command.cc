#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ledger/report/text.h"
#include "ledger/report/units.h"
#include "tools/gpuledger/commands.h"
#include "tools/gpuledger/exit_codes.h"
#include "tools/gpuledger/load.h"

namespace gpuledger {
namespace {

constexpr char kFooter[] = R"(Checks the identities that a ledger must fulfil, each with 0 bytes of difference:
  replayed_allocated   replayed allocated bytes = the allocator's own total, at every event
  replayed_reserved    replayed reserved bytes = the allocator's own total, at every event
  live_set_sum         the live set at the allocated peak adds up to the peak
  accounts_sum         the accounts of the balance sheet, with the unexplained, add up to the device's used bytes
  window_peaks         torch.cuda.max_memory_allocated() and _reserved(), per window   (with a truth file)
  snapshot_live_set    the blocks of torch.cuda.memory_snapshot() at an instant        (with a truth file)

A truth file lies beside its ledger: rank0.pid4711.truth.json for rank0.pid4711.ledger.

Examples:
  gpuledger verify ledger-run
  gpuledger verify ledger-run/rank0.pid4711.ledger --against truth.json
)";

struct Arguments {
  std::string directory, run, against;
};

std::string TruthPath(const std::string& ledger) {
  return absl::StrCat(absl::StripSuffix(ledger, ".ledger"), ".truth.json");
}

// The truth files of a run; false, and said why, when one is no truth file.
bool FindTruths(const Arguments& arguments, const RunFiles& files, LoadOptions& options) {
  if (!arguments.against.empty() && files.ledgers.size() != 1) {
    std::fprintf(
        stderr,
        "gpuledger: --against speaks of one ledger, and %s holds %zu; name the ledger instead of the directory\n",
        arguments.directory.c_str(), files.ledgers.size());
    return false;
  }
  for (const LedgerPath& ledger : files.ledgers) {
    const std::string path = arguments.against.empty() ? TruthPath(ledger.path) : arguments.against;
    std::error_code error;
    if (arguments.against.empty() && !std::filesystem::exists(path, error)) continue;
    auto truth = ledger::replay::ReadTruth(path);
    if (!truth.ok()) {
      std::fprintf(stderr, "gpuledger: %s\n", std::string(truth.status().message()).c_str());
      return false;
    }
    options.truths.emplace(ledger.path, *std::move(truth));
  }
  return true;
}

int Verify(const Arguments& arguments) {
  const auto files = FindRun(arguments.directory, arguments.run);
  if (!files.ok()) {
    std::fprintf(stderr, "gpuledger: %s\n", std::string(files.status().message()).c_str());
    return kUnreadable;
  }
  LoadOptions options;
  if (!FindTruths(arguments, *files, options)) return kUnreadable;
  const LoadedRun run = LoadRun(*files, options);
  for (const std::string& what : run.unreadable) std::fprintf(stderr, "gpuledger: %s\n", what.c_str());
  for (const std::string& note : files->notes) std::printf("note: %s\n", note.c_str());
  const std::string identities = ledger::report::IdentitiesText(run.report, /*every_rank=*/true);
  std::printf("%s, %s with a truth file\n%s", ledger::report::Count(run.report.ranks.size(), "rank").c_str(),
              ledger::report::Count(options.truths.size(), "rank").c_str(),
              identities.empty() ? "  no device memory was recorded: nothing to check\n" : identities.c_str());
  for (const auto& rank : run.report.ranks) {
    for (const auto& loss : rank.losses) {
      std::printf("  rank %d lost: %s x%llu (%s)\n", rank.rank, loss.reason.c_str(),
                  static_cast<unsigned long long>(loss.count), loss.meaning.c_str());
    }
  }
  if (!run.unreadable.empty()) return kUnreadable;
  return run.report.identities_hold() ? kOk : kMismatch;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("verify", "Does a recorded run add up, and agree with torch's own numbers");
  command->footer(std::string(kFooter) + "\n" + kExitCodes);
  command->add_option("DIR", arguments->directory, "Directory of a recorded run, or one ledger")->required();
  command->add_option("--against", arguments->against, "Truth file for the one ledger that DIR names");
  command->add_option("--run", arguments->run,
                      "Id of the run, where the directory holds several (default: the newest)");
  command->callback([arguments, &action] { action = [arguments] { return Verify(*arguments); }; });
}

}  // namespace gpuledger
