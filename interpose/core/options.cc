#include "interpose/core/options.h"

#include <stdlib.h>
#include <string.h>

#include "interpose/core/line.h"

namespace ledger {
namespace {

constinit Options g_options = {};

bool ParseNumber(const char* value, std::uint64_t& number) {
  number = 0;
  const char* at = value;
  for (; *at >= '0' && *at <= '9'; ++at) {
    if (__builtin_mul_overflow(number, std::uint64_t{10}, &number)) return false;
    if (__builtin_add_overflow(number, static_cast<std::uint64_t>(*at - '0'), &number)) return false;
  }
  return at != value && *at == '\0';
}

bool ParseFlag(const char* value, bool& flag) {
  std::uint64_t number;
  if (!ParseNumber(value, number) || number > 1) return false;
  flag = number == 1;
  return true;
}

bool ParseOff(const char* value, Options& options) { return ParseFlag(value, options.off); }
bool ParseMeminfo(const char* value, Options& options) { return ParseFlag(value, options.ask_memory); }

bool ParseAgent(const char* value, Options& options) { return ParseFlag(value, options.agent); }
bool ParseAdapter(const char* value, Options& options) { return ParseFlag(value, options.adapter); }

bool ParseOps(const char* value, Options& options) {
  std::uint64_t steps = UINT32_MAX;
  if (strcmp(value, "all") != 0 && (!ParseNumber(value, steps) || steps > UINT32_MAX)) return false;
  options.steps_with_ops = static_cast<std::uint32_t>(steps);
  return true;
}

bool ParseVerbose(const char* value, Options& options) {
  std::uint64_t number;
  if (!ParseNumber(value, number) || number > 2) return false;
  options.verbose = static_cast<int>(number);
  return true;
}

bool ParseDirectory(const char* value, Options& options) {
  const std::size_t length = strlen(value);
  if (length == 0 || length > kMaxPathBytes) return false;
  memcpy(options.directory, value, length + 1);
  return true;
}

// Digits, and one of K, M, G, T behind them for powers of 1024.
bool ParseMaxBytes(const char* value, Options& options) {
  char digits[24];
  const std::size_t length = strlen(value);
  if (length == 0 || length >= sizeof(digits)) return false;
  memcpy(digits, value, length + 1);
  constexpr char kUnits[] = "KMGT";
  const char* const unit = strchr(kUnits, digits[length - 1]);
  if (unit != nullptr) digits[length - 1] = '\0';
  std::uint64_t number;
  if (!ParseNumber(digits, number)) return false;
  if (unit != nullptr && __builtin_mul_overflow(number, std::uint64_t{1} << (10 * (unit - kUnits + 1)), &number)) {
    return false;
  }
  options.max_bytes = number;
  return true;
}

}  // namespace

const OptionRow kOptionRows[] = {
    {"LEDGER_DIR", "ledger-run", "folder of the ledgers, made if it is missing; one file per process", ParseDirectory},
    {"LEDGER_OFF", "0", "1: record nothing, create nothing", ParseOff},
    {"LEDGER_MAX_BYTES", "0", "largest size of a ledger (K, M, G, T for powers of 1024); 0: no limit", ParseMaxBytes},
    {"LEDGER_MEMINFO", "1", "0: never ask the driver how much memory is in use", ParseMeminfo},
    {"LEDGER_VERBOSE", "0", "1: say on stderr where the ledger is; 2: and why something was not recorded",
     ParseVerbose},
    {"LEDGER_AGENT", "1", "0: no phases, modules and names from inside the Python interpreter", ParseAgent},
    {"LEDGER_ADAPTER", "1", "0: no ops, saved tensors and requested sizes from inside PyTorch", ParseAdapter},
    {"LEDGER_OPS", "4", "optimizer steps, from the start, in which every op is observed; or all", ParseOps},
};
const std::size_t kOptionCount = sizeof(kOptionRows) / sizeof(kOptionRows[0]);

void ReadOptions(Options& options) {
  for (std::size_t i = 0; i < kOptionCount; ++i) {
    const OptionRow& row = kOptionRows[i];
    row.parse(row.fallback, options);
    const char* const value = getenv(row.name);
    if (value == nullptr || row.parse(value, options)) continue;
    Line<512> message;
    message << row.name << "=" << value << " makes no sense, " << row.fallback << " is used (" << row.meaning << ")";
    Say(message.view());
  }
}

bool SwitchedOff() {
  const char* const value = getenv("LEDGER_OFF");
  return value != nullptr && strcmp(value, "1") == 0;
}

const Options& CurrentOptions() { return g_options; }
Options& MutableOptions() { return g_options; }

}  // namespace ledger
