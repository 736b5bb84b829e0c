// The recorder's process-wide state, for the files of this folder only; hooks use recorder.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "interpose/record/clock.h"
#include "interpose/record/ledger_file.h"

namespace ledger {

enum class State : std::uint32_t {
  kDormant = 0,  // what a forked child reads: the page that holds the state is zero there
  kActive = 1,
  kOpening = 2,  // one thread is in Wake; the others wait for it, for a bounded time
  kPaused = 3,
  kStopped = 4,  // the file is full, failed, or finished: for good
  kOff = 5,      // LEDGER_OFF, or no file could be made: for good
};

std::atomic<State>& ProcessState();

LedgerFile& File();
inline bool FileIsOpen() { return File().open(); }

// Which file this is: 1 for the first, more in forked children. What was noted once per file compares it.
std::uint32_t FileGeneration();

// Puts the state into a page that the kernel clears in every forked child, also where no fork handler runs (clone).
void PlaceStateForForks();

void SetLoadReading(const EarlyReading& reading);

// In a forked child: nothing of the parent's file is ours.
void ForgetParent();

// Ends the ledger: appends the last anchor, marks the clean end. Constant time; calls neither CUDA nor the framework.
void EndLedger();

// Writes what is known about the run: versions, settings of the environment, the command line. The file is open.
void DescribeRun();
// The versions of the CUDA runtimes that are loaded. Not to be called from inside one of them.
void NoteRuntimeVersion();
// Fills the header's fields about the process. The file is open.
void DescribeProcess(record::FileHeader& header);

}  // namespace ledger
