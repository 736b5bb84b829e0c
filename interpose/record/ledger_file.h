// The ledger's file, written through a growing shared mapping: what a thread has committed survives the process.
//
//   base_                             ready_end_  usable_end_     mapped_end_                 base_ + reserved_bytes_
//   |header|slots, pages dropped|recent  |  slack   |  allocated ...  |  address space only ...  |
//
// The address space is reserved once and contiguous, so that a slot's address never changes. File chunks are allocated
// (never sparse: a full disk is an error of a call, not a SIGBUS in the job) and mapped into it in order. Within what
// is mapped, pages are primed a piece at a time: zeros are written through the descriptor, and the pages faulted in at
// once. (Measured on ext4: a first touch through the mapping costs 3 µs a page, priming 1 µs.) Pages far behind the end
// leave the process again; a thread that was descheduled with a slot in hand simply faults its page back in.
//
// Concurrency: Append may be called by any number of threads, and from a forked child never (Abandon comes first
// there). The first thread whose slot ends beyond ready_end_ primes the next piece under lock_ while the others go on
// in the slack; a thread whose slot ends beyond usable_end_ waits, for a bounded time. Nothing but priming ever writes
// beyond usable_end_, so its zeros can't hit a record. Create, Finish and Abandon are called by one thread at a time;
// Finish is safe while other threads still append: their records fall away.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "interpose/record/record.h"
#include "interpose/record/spin_lock.h"

namespace ledger {

class LedgerFile {
 public:
  // What the tests replace to see a disk fill up. Returns 0 or an errno value; nullptr is the real one.
  using AllocateFunction = int (*)(int fd, off_t offset, off_t bytes);

  constexpr LedgerFile() = default;

  // Creates the file at `path`, which must not exist, and maps it. `max_bytes` bounds its size; 0: as far as the
  // address space goes. Returns 0 or an errno value. The caller fills the rest of header().
  int Create(const char* path, std::uint64_t max_bytes);

  bool open() const { return ready_end_.load(std::memory_order_acquire) != 0; }
  record::FileHeader* header() const { return reinterpret_cast<record::FileHeader*>(base_); }

  // Reserves a slot, copies bytes 8..63 of `record`, commits. False: dropped, and counted in the header.
  bool Append(record::Commit commit, const void* record) {
    const std::uint64_t ready_end = ready_end_.load(std::memory_order_acquire);
    if (ready_end == 0) [[unlikely]]
      return false;
    const std::uint64_t slot = Reserved().fetch_add(1, std::memory_order_relaxed);
    const std::uint64_t offset = record::kHeaderBytes + slot * record::kRecordBytes;
    if (offset + record::kRecordBytes > ready_end) [[unlikely]] {
      if (!MakeReady(offset + record::kRecordBytes)) return false;
    }
    std::uint8_t* const target = base_ + offset;
    // Records are far apart in time, and their lines in no cache: have the next ones on their way.
    __builtin_prefetch(target + 2 * record::kRecordBytes, 1);
    std::memcpy(target + sizeof(commit), static_cast<const std::uint8_t*>(record) + sizeof(commit),
                record::kRecordBytes - sizeof(commit));
    std::uint64_t word;
    std::memcpy(&word, &commit, sizeof(word));
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(target)).store(word, std::memory_order_release);
    return true;
  }

  void Count(record::Loss loss, std::uint64_t times = 1);

  // True once after each growth of the file: the caller then appends a clock anchor.
  bool TakeGrowth() { return grown_.load(std::memory_order_relaxed) && grown_.exchange(false); }

  // True when the file can take no more (full disk, limit, internal error).
  bool exhausted() const { return exhausted_.load(std::memory_order_relaxed); }

  // Ends the file: no record is taken from here on, the file shrinks to what was used. Constant time.
  void Finish(std::uint64_t end_ticks, bool clean);

  // Forgets the parent's file, in a forked child. Leaves the file itself alone.
  void Abandon();

  // Waits until the records are on disk.
  void Sync();

  // Pages of the file that may be resident in this process.
  std::uint64_t resident_bytes() const { return resident_bytes_.load(std::memory_order_relaxed); }

  void set_allocate_for_testing(AllocateFunction allocate) { allocate_ = allocate; }

 private:
  std::atomic_ref<std::uint64_t> Reserved() const { return std::atomic_ref<std::uint64_t>(header()->reserved); }

  [[gnu::cold, gnu::noinline]] bool MakeReady(std::uint64_t end);
  bool Extend();  // lock_ held: makes the next piece usable
  bool Grow();    // lock_ held: allocates and maps the next step of the file
  bool Prime(std::uint64_t begin, std::uint64_t end);
  void DropOldPages(std::uint64_t end);
  bool FileIsStillOurs();
  int Allocate(std::uint64_t offset, std::uint64_t bytes) const;
  bool Exhaust(record::Loss loss);

  std::uint8_t* base_ = nullptr;
  std::atomic<std::uint64_t> ready_end_{0};   // slots that end here or before need no further care; 0: not open
  std::atomic<std::uint64_t> usable_end_{0};  // slots that end here or before may be written
  std::atomic<std::uint64_t> mapped_end_{0};  // end of what is allocated and mapped
  std::atomic<std::uint64_t> resident_bytes_{0};
  std::atomic<bool> grown_{false};
  std::atomic<bool> exhausted_{false};
  bool finished_ = false;
  bool can_populate_ = true;
  bool write_zeros_ = true;  // not where allocation has made the pages already (tmpfs)
  int fd_ = -1;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t limit_bytes_ = 0;
  std::uint64_t step_bytes_ = 0;
  std::uint64_t dropped_end_ = 0;  // pages before this have left the process
  dev_t device_ = 0;               // of the file, to notice when the program closed our descriptor
  ino_t inode_ = 0;
  record::Loss exhausted_by_ = record::Loss::kInternal;
  SpinLock lock_;
  AllocateFunction allocate_ = nullptr;
};
static_assert(std::is_trivially_destructible_v<LedgerFile>);

}  // namespace ledger
