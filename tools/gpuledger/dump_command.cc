#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "ledger/format/ledger_file.h"
#include "ledger/format/names.h"
#include "ledger/replay/analysis.h"
#include "ledger/report/describe.h"
#include "tools/gpuledger/commands.h"
#include "tools/gpuledger/exit_codes.h"

namespace gpuledger {
namespace {

using ledger::format::LedgerFile;
using ledger::record::Kind;

constexpr char kFooter[] =
    R"(One line for each record, in the order of events. Times are seconds since the ledger was opened.

Examples:
  gpuledger dump rank0.pid4711.ledger --limit 20
  gpuledger dump rank0.pid4711.ledger --kind block_alloc,block_free --from 1.5 --to 2
  gpuledger dump rank0.pid4711.ledger --from "mark:step 3" --to "mark:step 4"
  gpuledger dump rank0.pid4711.ledger --json | jq 'select(.kind == "alloc") | .size'
)";

struct Arguments {
  std::string file, from, to;
  std::vector<std::string> kinds;
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  bool json = false;
};

// The part of a ledger that lies between --from and --to: by slots for marks, by time for numbers.
struct Span {
  std::uint64_t first_slot = 0;
  std::uint64_t last_slot = std::numeric_limits<std::uint64_t>::max();
  std::int64_t from_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t to_ns = std::numeric_limits<std::int64_t>::max();
};

bool ParseInstant(const LedgerFile& file, absl::string_view text, std::uint64_t& slot, std::int64_t& ns) {
  if (text.empty()) return true;
  if (absl::ConsumePrefix(&text, "mark:")) {
    const auto mark = ledger::replay::FindMark(file, text);
    if (!mark.has_value()) {
      std::fprintf(stderr, "gpuledger: %s: no mark \"%s\"; `gpuledger dump FILE --kind mark` lists them\n",
                   file.path().c_str(), std::string(text).c_str());
      return false;
    }
    slot = *mark;
    return true;
  }
  double seconds = 0;
  constexpr double kMaxSeconds = 1e9;
  if (!absl::SimpleAtod(text, &seconds) || seconds < -kMaxSeconds || seconds > kMaxSeconds) {
    std::fprintf(stderr, "gpuledger: expected seconds or mark:NAME, got \"%s\"\n", std::string(text).c_str());
    return false;
  }
  ns = static_cast<std::int64_t>(seconds * 1e9);
  return true;
}

bool ParseKinds(const std::vector<std::string>& names, std::set<Kind>& kinds) {
  for (const std::string& name : names) {
    const auto kind = ledger::format::KindFromName(name);
    if (!kind.has_value()) {
      std::fprintf(stderr, "gpuledger: no kind of record is called \"%s\"; docs/format.md lists them\n", name.c_str());
      return false;
    }
    kinds.insert(*kind);
  }
  return true;
}

bool Selected(const LedgerFile& file, std::uint64_t index, const std::set<Kind>& kinds, const Span& span) {
  const auto& slot = file.slots()[index];
  if (!slot.committed()) return kinds.empty();
  if (!kinds.empty() && kinds.count(slot.kind()) == 0) return false;
  const bool whole = span.from_ns == std::numeric_limits<std::int64_t>::min() &&
                     span.to_ns == std::numeric_limits<std::int64_t>::max();
  if (whole) return true;
  if (slot.kind() == Kind::kText) return false;  // has no time
  const std::int64_t ns = file.clock().SinceOpenNs(slot.ticks());
  return span.from_ns <= ns && ns <= span.to_ns;
}

int Dump(const Arguments& arguments) {
  const auto file = LedgerFile::Open(arguments.file);
  if (!file.ok()) {
    std::fprintf(stderr, "gpuledger: %s\n", std::string(file.status().message()).c_str());
    return kUnreadable;
  }
  Span span;
  std::set<Kind> kinds;
  if (!ParseInstant(*file, arguments.from, span.first_slot, span.from_ns) ||
      !ParseInstant(*file, arguments.to, span.last_slot, span.to_ns) || !ParseKinds(arguments.kinds, kinds)) {
    return kUsage;
  }
  std::uint64_t printed = 0;
  for (std::uint64_t i = span.first_slot; i < file->slots().size() && i <= span.last_slot && printed < arguments.limit;
       ++i) {
    if (!Selected(*file, i, kinds, span)) continue;
    const std::string line =
        arguments.json ? ledger::report::DescribeJson(*file, i) : ledger::report::DescribeText(*file, i);
    if (std::puts(line.c_str()) < 0) return kUnreadable;
    ++printed;
  }
  return std::fflush(stdout) == 0 ? kOk : kUnreadable;
}

}  // namespace

void AddDumpCommand(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("dump", "The records of one ledger, line by line");
  command->footer(std::string(kFooter) + "\n" + kExitCodes);
  command->add_option("FILE", arguments->file, "A ledger")->required();
  command->add_flag("--json", arguments->json, "One JSON object per line");
  command->add_option("--kind", arguments->kinds, "Only records of these kinds, such as block_alloc")->delimiter(',');
  command->add_option("--from", arguments->from, "Begin here: seconds, or mark:NAME");
  command->add_option("--to", arguments->to, "End here: seconds, or mark:NAME");
  command->add_option("--limit", arguments->limit, "Stop after so many lines");
  command->callback([arguments, &action] { action = [arguments] { return Dump(*arguments); }; });
}

}  // namespace gpuledger
