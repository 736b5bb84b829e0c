// The recorder as the hooks see it: is anything recorded, and how does a record get into the ledger.
//
// The life of a process: Dormant (nothing happened yet; no file) → Active (a CUDA call that matters was seen, the file
// is open) → Stopped (switched off, failed, or past the end). A forked child starts again at Dormant with a file of its
// own. All of this is lock-free and allocation-free on the hot path, and may be called under the allocator's lock.
//
// A hook reads, in this order:
//     if (!Active() && !Wake()) return;      // after a call that matters succeeded; others only ask Active()
//     record::Allocation record = {};        // unused fields are zero
//     record.commit.kind = ...;              // kind, layer and device; thread and ticks are filled by Append
//     Append(record);
#pragma once

#include <cstdint>
#include <string_view>

#include "interpose/record/record.h"

namespace ledger {

// True while the process is recorded. Hooks ask this first and do nothing else when it is false.
bool Active();

// Wakes a dormant recorder (opens the file). Called by hooks of calls that matter. Cold. Returns Active().
bool Wake();

// Public API: stops and resumes recording (the records kPause and kResume stand in the ledger), and waits for the disk.
void Pause();
void Resume();
void Flush();

std::uint64_t Ticks();
std::uint32_t ThreadId();

// Writes one record as it stands, except for the thread in its commit word. False: it was dropped, and counted.
bool AppendRaw(record::Commit commit, const void* record);

// Appends a record of one of the layouts in record.h: fills `commit.thread` (and `ticks` where the caller left 0),
// reserves a slot, copies, commits. Drops and counts when the file cannot take it.
template <typename R>
void Append(R& record) {
  static_assert(sizeof(R) == record::kRecordBytes);
  if constexpr (requires { record.ticks; }) {
    if (record.ticks == 0) record.ticks = Ticks();
  }
  AppendRaw(record.commit, &record);
}

// The id of a text in this ledger; writes it first if it is new. 0 when the table is full (counted) or while dormant.
std::uint32_t InternText(std::string_view text);

// Scopes. A thread's current scope; ranges of every source push and pop here. Work while dormant, too: the definitions
// are written when the file opens. `domain` is the NVTX domain, empty for the default one and for ledger.h.
// Push and pop write kRangePush and kRangePop while the process is recorded. A pop ends the innermost range of its own
// source and domain, also where ranges of another domain were opened inside it and are still open.
std::uint32_t CurrentScope();
std::uint32_t PushScope(record::Layer source, std::string_view domain, std::string_view name, std::uint64_t payload);
void PopScope(record::Layer source, std::string_view domain);

// The scope that pushing `name` would give, without pushing it: for marks and process-wide ranges with a name.
std::uint32_t ScopeUnder(std::uint32_t parent, record::Layer source, std::string_view domain, std::string_view name);

// The library (base name, interned) whose code contains `return_address`; the program itself has its own base name.
std::uint32_t OwnerOf(const void* return_address);

void Count(record::Loss loss);

// Appends a Setting record. Does nothing unless the process is recorded.
void NoteSetting(std::string_view key, std::string_view value);

// The NCCL communicator on whose behalf this thread calls the driver (0: none): it goes into Allocation::context of the
// memory that is got or given back meanwhile. Returns the previous one, which the caller puts back.
std::uint64_t ExchangeCommunicator(std::uint64_t communicator);

// The communicator that memory is for which `owner` (a library's name) gets on this thread now; 0: none, or not known.
// NCCL does some of its work on threads of its own: while there is a single call of NCCL in the process, it is for
// that.
std::uint64_t CurrentCommunicator(std::uint32_t owner);

// Marks that this thread is inside a memory hook, so that the layer below is not recorded a second time. Only for hooks
// of memory calls: a hook of NCCL or NVTX holds none across its real call, or NCCL's own memory would go unseen.
class HookGuard {
 public:
  HookGuard();
  ~HookGuard();
  HookGuard(const HookGuard&) = delete;
  HookGuard& operator=(const HookGuard&) = delete;
  bool outermost() const;
};

// Keeps errno as the caller of a hook saw it.
class ErrnoSaver {
 public:
  ErrnoSaver();
  ~ErrnoSaver();
  ErrnoSaver(const ErrnoSaver&) = delete;
  ErrnoSaver& operator=(const ErrnoSaver&) = delete;

 private:
  int saved_;
};

}  // namespace ledger
