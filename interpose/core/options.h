// The settings of the recorder: all of them environment variables, all of them in the table in options.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ledger {

inline constexpr std::size_t kMaxPathBytes = 4095;

struct Options {
  bool off;                           // LEDGER_OFF
  bool ask_memory;                    // LEDGER_MEMINFO
  int verbose;                        // LEDGER_VERBOSE
  bool agent;                         // LEDGER_AGENT
  bool adapter;                       // LEDGER_ADAPTER
  std::uint32_t steps_with_ops;       // LEDGER_OPS
  std::uint64_t max_bytes;            // LEDGER_MAX_BYTES; 0: no limit
  char directory[kMaxPathBytes + 1];  // LEDGER_DIR
};

// What a variable means, for the documentation's sake as much as for the parser's.
struct OptionRow {
  const char* name;
  const char* fallback;
  const char* meaning;
  bool (*parse)(const char* value, Options& options);  // false: the value makes no sense
};
extern const OptionRow kOptionRows[];
extern const std::size_t kOptionCount;

// Reads the environment. A value that makes no sense is named on stderr, and the default holds.
void ReadOptions(Options& options);

// Reads LEDGER_OFF alone.
bool SwitchedOff();

// The options of this process, as read when the recorder woke.
const Options& CurrentOptions();
Options& MutableOptions();

}  // namespace ledger
