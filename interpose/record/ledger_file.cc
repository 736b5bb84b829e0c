#include "interpose/record/ledger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

namespace ledger {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kReservationBytes = 64 * 1024 * kMiB;
constexpr std::uint64_t kSmallestReservationBytes = 64 * kMiB;
constexpr std::uint64_t kFirstStepBytes = 1 * kMiB;
constexpr std::uint64_t kLargestStepBytes = 16 * kMiB;
// A piece is primed in some 60 µs; half of it is the slack in which the other threads go on meanwhile.
constexpr std::uint64_t kPieceBytes = 256 * 1024;
constexpr std::uint64_t kSlackBytes = kPieceBytes / 2;
// Pages leave the process once this much lies behind the usable end, down to kKeptBytes.
constexpr std::uint64_t kDropAboveBytes = 8 * kMiB;
constexpr std::uint64_t kKeptBytes = 4 * kMiB;
// Programs close descriptors in bulk from 3 upwards, and expect low numbers for their own.
constexpr int kLowestDescriptor = 700;
constexpr int kMadvPopulateWrite = 23;  // MADV_POPULATE_WRITE, Linux 5.14

constinit char g_zeros[64 * 1024] = {};  // never written; not const, or it would take room in the library's file

std::uint64_t PageBytes() { return static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)); }
std::uint64_t PageDown(std::uint64_t bytes) { return bytes / PageBytes() * PageBytes(); }
std::uint64_t PageUp(std::uint64_t bytes) { return PageDown(bytes + PageBytes() - 1); }

// Writes zeros in as few calls as possible: the kernel then makes larger pieces of page cache. For the pages ahead of
// the records, and for space on file systems without fallocate, where writing is the one way to be sure of it.
int WriteZeros(int fd, std::uint64_t offset, std::uint64_t bytes) {
  constexpr int kMaxPieces = 16;
  iovec pieces[kMaxPieces];
  while (bytes > 0) {
    int count = 0;
    for (std::uint64_t left = bytes; left > 0 && count < kMaxPieces; ++count) {
      pieces[count] = {g_zeros, std::min<std::uint64_t>(left, sizeof(g_zeros))};
      left -= pieces[count].iov_len;
    }
    const ssize_t written = pwritev(fd, pieces, count, static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      return errno;
    }
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::uint64_t>(written);
  }
  return 0;
}

int AllocateOnDisk(int fd, off_t offset, off_t bytes) {
  while (fallocate(fd, 0, offset, bytes) != 0) {
    if (errno == EINTR) continue;
    if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
    return WriteZeros(fd, static_cast<std::uint64_t>(offset), static_cast<std::uint64_t>(bytes));
  }
  return 0;
}

// An address space limit is the job's, not ours to use up.
std::uint64_t ReservationWanted() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kReservationBytes;
  constexpr std::uint64_t kShare = 32;
  return std::clamp<std::uint64_t>(limit.rlim_cur / kShare, kSmallestReservationBytes, kReservationBytes);
}

}  // namespace

int LedgerFile::Create(const char* path, std::uint64_t max_bytes) {
  int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return errno;
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
  if (high >= 0) {
    close(fd);
    fd = high;
  }

  int error = 0;
  std::uint64_t wanted = ReservationWanted();
  void* base = MAP_FAILED;
  for (; wanted >= kSmallestReservationBytes; wanted /= 2) {
    base = mmap(nullptr, wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base != MAP_FAILED) break;
    error = errno;
  }
  struct stat status;
  if (base == MAP_FAILED || fstat(fd, &status) != 0) {
    if (base != MAP_FAILED) {
      error = errno;
      munmap(base, wanted);
    }
    close(fd);
    unlink(path);
    return error;
  }

  fd_ = fd;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  base_ = static_cast<std::uint8_t*>(base);
  reserved_bytes_ = wanted;
  limit_bytes_ = max_bytes == 0 ? wanted : std::min(wanted, std::max(PageDown(max_bytes), 2 * PageBytes()));
  step_bytes_ = kFirstStepBytes;
  dropped_end_ = PageUp(record::kHeaderBytes);
  struct statfs file_system;
  constexpr auto kTmpfs = 0x01021994;
  write_zeros_ = fstatfs(fd, &file_system) != 0 || file_system.f_type != kTmpfs;
  mapped_end_.store(0, std::memory_order_relaxed);
  usable_end_.store(0, std::memory_order_relaxed);
  resident_bytes_.store(0, std::memory_order_relaxed);
  exhausted_.store(false, std::memory_order_relaxed);
  finished_ = false;

  if (!Extend()) {
    error = exhausted_by_ == record::Loss::kDiskFull ? ENOSPC : EIO;
    Abandon();
    unlink(path);
    return error;
  }
  record::FileHeader* const head = header();
  std::memcpy(head->magic, record::kMagic, sizeof(head->magic));
  head->version_major = record::kVersionMajor;
  head->version_minor = record::kVersionMinor;
  head->header_bytes = record::kHeaderBytes;
  head->record_bytes = record::kRecordBytes;
  grown_.store(false, std::memory_order_relaxed);
  return 0;
}

void LedgerFile::Count(record::Loss loss, std::uint64_t times) {
  if (base_ == nullptr) return;
  std::atomic_ref<std::uint64_t>(header()->losses[static_cast<std::size_t>(loss)])
      .fetch_add(times, std::memory_order_relaxed);
}

bool LedgerFile::Exhaust(record::Loss loss) {
  exhausted_by_ = loss;
  exhausted_.store(true, std::memory_order_relaxed);
  return false;
}

bool LedgerFile::MakeReady(std::uint64_t end) {
  if (!open()) return false;
  if (end <= usable_end_.load(std::memory_order_acquire)) {
    if (lock_.TryAcquire()) {
      // Whether it succeeds or not: this slot has its place.
      if (end > ready_end_.load(std::memory_order_relaxed) && !finished_ && !exhausted()) Extend();
      lock_.Release();
    }
    return true;
  }
  if (!lock_.Acquire()) {
    Count(record::Loss::kInternal);
    return false;
  }
  bool ready = true;
  while (ready && end > usable_end_.load(std::memory_order_relaxed)) ready = !finished_ && !exhausted() && Extend();
  lock_.Release();
  if (!ready && !finished_) Count(exhausted_by_);
  return ready;
}

bool LedgerFile::Extend() {
  const std::uint64_t begin = usable_end_.load(std::memory_order_relaxed);
  if (!FileIsStillOurs()) return Exhaust(record::Loss::kInternal);
  if (begin == mapped_end_.load(std::memory_order_relaxed) && !Grow()) return false;
  const std::uint64_t end = std::min(begin + kPieceBytes, mapped_end_.load(std::memory_order_relaxed));
  if (!Prime(begin, end)) return Exhaust(record::Loss::kDiskFull);
  DropOldPages(end);
  resident_bytes_.store(end - dropped_end_ + record::kHeaderBytes, std::memory_order_relaxed);
  usable_end_.store(end, std::memory_order_release);
  ready_end_.store(end - std::min(kSlackBytes, (end - begin) / 2), std::memory_order_release);
  return true;
}

bool LedgerFile::Prime(std::uint64_t begin, std::uint64_t end) {
  if (write_zeros_ && WriteZeros(fd_, begin, end - begin) != 0) return false;
  if (can_populate_ && madvise(base_ + begin, end - begin, kMadvPopulateWrite) != 0) {
    if (errno != EINVAL) return false;  // a page can't be had: touching it would be a SIGBUS
    can_populate_ = false;              // an older kernel: pages come by faults
  }
  return true;
}

void LedgerFile::DropOldPages(std::uint64_t end) {
  if (end <= dropped_end_ + kDropAboveBytes) return;
  const std::uint64_t keep_from = PageDown(end - kKeptBytes);
  // Drops the page table entries alone: the pages are dirty in the page cache and go to disk in their time.
  madvise(base_ + dropped_end_, keep_from - dropped_end_, MADV_DONTNEED);
  dropped_end_ = keep_from;
}

int LedgerFile::Allocate(std::uint64_t offset, std::uint64_t bytes) const {
  // Beyond RLIMIT_FSIZE the kernel does not only refuse: it sends SIGXFSZ, which would end the job.
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && offset + bytes > limit.rlim_cur) {
    return EFBIG;
  }
  const AllocateFunction allocate = allocate_ != nullptr ? allocate_ : AllocateOnDisk;
  return allocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

// A program that closes every descriptor it did not open closes ours, and the number may be another file by now.
bool LedgerFile::FileIsStillOurs() {
  struct stat status;
  return fstat(fd_, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

bool LedgerFile::Grow() {
  const std::uint64_t begin = mapped_end_.load(std::memory_order_relaxed);
  const std::uint64_t bytes = std::min(step_bytes_, limit_bytes_ - begin);
  if (bytes == 0) return Exhaust(record::Loss::kFileLimit);
  if (Allocate(begin, bytes) != 0) {
    // What a failed attempt may have allocated goes back to the job.
    if (begin > 0 && ftruncate(fd_, static_cast<off_t>(begin)) != 0) return Exhaust(record::Loss::kInternal);
    return Exhaust(record::Loss::kDiskFull);
  }
  if (mmap(base_ + begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_, static_cast<off_t>(begin)) ==
      MAP_FAILED) {
    return Exhaust(record::Loss::kInternal);
  }
  step_bytes_ = std::min(2 * step_bytes_, kLargestStepBytes);
  mapped_end_.store(begin + bytes, std::memory_order_release);
  grown_.store(true, std::memory_order_relaxed);
  return true;
}

void LedgerFile::Finish(std::uint64_t end_ticks, bool clean) {
  if (!open()) return;
  record::FileHeader* const head = header();
  // Without the lock somebody may be growing the file: then it keeps its size, and the reader knows what was used.
  const bool locked = lock_.Acquire();
  finished_ = true;
  ready_end_.store(0, std::memory_order_release);
  head->end_ticks = end_ticks;
  if (locked) {
    const std::uint64_t mapped = mapped_end_.load(std::memory_order_relaxed);
    const std::uint64_t used =
        std::min(usable_end_.load(std::memory_order_relaxed),
                 record::kHeaderBytes + Reserved().load(std::memory_order_acquire) * record::kRecordBytes);
    const std::uint64_t kept = PageUp(used);
    // A thread may hold a slot beyond the end that it has not filled yet. Touching a page behind the end of a file is a
    // SIGBUS, so plain memory takes the place of those pages first.
    const bool covered =
        kept == mapped || mmap(base_ + kept, mapped - kept, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
    if (covered && FileIsStillOurs() && ftruncate(fd_, static_cast<off_t>(used)) != 0) clean = false;
    // Slots that the file could not take anymore are losses, counted as such, and not slots.
    if (exhausted()) Reserved().store((used - record::kHeaderBytes) / record::kRecordBytes, std::memory_order_relaxed);
    lock_.Release();
  }
  const std::size_t kFatalLosses[] = {static_cast<std::size_t>(record::Loss::kDiskFull),
                                      static_cast<std::size_t>(record::Loss::kFileLimit),
                                      static_cast<std::size_t>(record::Loss::kInternal)};
  for (const std::size_t loss : kFatalLosses) clean = clean && head->losses[loss] == 0;
  head->clean_end = clean ? 1 : 0;
}

void LedgerFile::Abandon() {
  ready_end_.store(0, std::memory_order_relaxed);
  usable_end_.store(0, std::memory_order_relaxed);
  mapped_end_.store(0, std::memory_order_relaxed);
  if (base_ != nullptr) munmap(base_, reserved_bytes_);
  base_ = nullptr;
  if (fd_ >= 0 && FileIsStillOurs()) close(fd_);
  fd_ = -1;
  lock_.Reset();
}

void LedgerFile::Sync() {
  const std::uint64_t mapped = mapped_end_.load(std::memory_order_acquire);
  if (open()) msync(base_, mapped, MS_SYNC);
}

}  // namespace ledger
