#include "interpose/record/ledger_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <random>
#include <thread>
#include <vector>

#include "tests/programs/run_program.h"

namespace ledger {
namespace {

using record::Loss;
using testing::TemporaryFolder;

constexpr std::uint64_t kMiB = 1024 * 1024;

record::Block BlockOf(std::uint32_t thread, std::uint64_t number) {
  record::Block block = {};
  block.commit.kind = static_cast<std::uint16_t>(record::Kind::kBlockAlloc);
  block.commit.thread = thread;
  block.ticks = number + 1;
  block.address = std::uint64_t{thread} << 32 | number;
  block.size = 512;
  block.requested = ~block.address;  // the last field of the record: shows a record that is not whole
  return block;
}

bool Append(LedgerFile& file, std::uint32_t thread, std::uint64_t number) {
  const record::Block block = BlockOf(thread, number);
  return file.Append(block.commit, &block);
}

// Returns how many were taken.
std::uint64_t AppendMany(LedgerFile& file, std::uint64_t count) {
  std::uint64_t taken = 0;
  while (taken < count && Append(file, 1, taken)) ++taken;
  return taken;
}

struct Contents {
  record::FileHeader header;
  std::vector<record::Block> slots;  // all that are handed out and in the file
  std::uint64_t bytes;
};

Contents Read(const std::string& path) {
  const std::string bytes = testing::ReadFile(path);
  Contents contents;
  REQUIRE(bytes.size() >= record::kHeaderBytes);
  std::memcpy(&contents.header, bytes.data(), sizeof(contents.header));
  contents.bytes = bytes.size();
  const std::uint64_t present = (bytes.size() - record::kHeaderBytes) / record::kRecordBytes;
  contents.slots.resize(std::min(present, contents.header.reserved));
  std::memcpy(contents.slots.data(), bytes.data() + record::kHeaderBytes, contents.slots.size() * record::kRecordBytes);
  return contents;
}

bool Committed(const record::Block& slot) { return slot.commit.kind != 0; }
bool Whole(const record::Block& slot) { return slot.requested == ~slot.address && slot.size == 512; }
std::uint64_t LossOf(const record::FileHeader& header, Loss loss) {
  return header.losses[static_cast<std::size_t>(loss)];
}

// Bytes of this process that are resident in mappings of `path`.
std::uint64_t ResidentBytesOf(const std::string& path) {
  std::ifstream smaps("/proc/self/smaps");
  std::uint64_t resident = 0;
  bool ours = false;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find('-') < line.find(' ')) ours = line.ends_with(path);
    if (ours && line.starts_with("Rss:")) resident += 1024 * std::stoull(line.substr(4));
  }
  return resident;
}

// Runs `body` in a child and returns its wait status.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

TEST_CASE("a file that grows through many steps holds every record, and ends at its used size") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger";
  static LedgerFile file;
  REQUIRE(file.Create(path.c_str(), 0) == 0);
  constexpr std::uint64_t kRecords = 1'000'000;  // 61 MiB: the steps of 1, 2, 4, 8, 16 MiB and two more
  CHECK(AppendMany(file, kRecords) == kRecords);
  CHECK(file.TakeGrowth());
  CHECK_FALSE(file.TakeGrowth());
  // Our share of the program's memory does not grow with the file.
  CHECK(ResidentBytesOf(path) <= 10 * kMiB);
  CHECK(file.resident_bytes() <= 10 * kMiB);
  file.Finish(77, true);
  CHECK_FALSE(Append(file, 1, kRecords));

  const Contents contents = Read(path);
  CHECK(contents.bytes == record::kHeaderBytes + kRecords * record::kRecordBytes);
  CHECK(contents.header.reserved == kRecords);
  CHECK(contents.header.clean_end == 1);
  CHECK(contents.header.end_ticks == 77);
  CHECK(contents.header.version_major == record::kVersionMajor);
  REQUIRE(contents.slots.size() == kRecords);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    if (!Committed(contents.slots[i]) || !Whole(contents.slots[i]) || contents.slots[i].ticks != i + 1) ++wrong;
  }
  CHECK(wrong == 0);
  file.Abandon();
}

TEST_CASE("an existing file is never touched") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger";
  std::ofstream(path) << "somebody's";
  static LedgerFile file;
  CHECK(file.Create(path.c_str(), 0) == EEXIST);
  CHECK_FALSE(file.open());
  CHECK_FALSE(Append(file, 1, 0));
  CHECK(testing::ReadFile(path) == "somebody's");
}

TEST_CASE("a file stops at its limit, counts what is lost, and keeps what it has") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger";
  static LedgerFile file;
  REQUIRE(file.Create(path.c_str(), 3 * kMiB) == 0);
  constexpr std::uint64_t kFit = (3 * kMiB - record::kHeaderBytes) / record::kRecordBytes;
  CHECK(AppendMany(file, kFit) == kFit);
  for (std::uint64_t i = 0; i < 5; ++i) CHECK_FALSE(Append(file, 1, kFit + i));
  CHECK(file.exhausted());
  file.Finish(1, true);
  const Contents contents = Read(path);
  CHECK(contents.bytes == 3 * kMiB);
  CHECK(LossOf(contents.header, Loss::kFileLimit) == 5);
  CHECK(contents.header.clean_end == 0);
  CHECK(contents.header.reserved == kFit);
  CHECK(std::all_of(contents.slots.begin(), contents.slots.end(), Committed));
  file.Abandon();
}

int g_allocations_left = 0;
int FailingAllocate(int fd, off_t offset, off_t bytes) {
  if (g_allocations_left-- <= 0) return ENOSPC;
  return fallocate(fd, 0, offset, bytes) == 0 ? 0 : errno;
}
int UnsupportedAllocate(int fd, off_t offset, off_t bytes) {
  std::vector<char> zeros(static_cast<std::size_t>(bytes));
  return pwrite(fd, zeros.data(), zeros.size(), offset) == bytes ? 0 : errno;
}

TEST_CASE("a full disk is a counted loss, not a signal") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger";
  static LedgerFile file;
  file.set_allocate_for_testing(FailingAllocate);

  SECTION("at the first step there is no file") {
    g_allocations_left = 0;
    CHECK(file.Create(path.c_str(), 0) == ENOSPC);
    CHECK_FALSE(std::filesystem::exists(path));
    CHECK_FALSE(file.open());
  }
  SECTION("later on, what was recorded stays") {
    g_allocations_left = 2;  // 1 MiB and 2 MiB
    REQUIRE(file.Create(path.c_str(), 0) == 0);
    std::uint64_t taken = 0;
    while (Append(file, 1, taken)) ++taken;
    CHECK(taken == (3 * kMiB - record::kHeaderBytes) / record::kRecordBytes);
    CHECK(file.exhausted());
    // The space of the failed attempt is given back at once, to the job.
    CHECK(std::filesystem::file_size(path) == 3 * kMiB);
    file.Finish(1, true);
    const Contents contents = Read(path);
    CHECK(LossOf(contents.header, Loss::kDiskFull) == 1);
    CHECK(contents.header.clean_end == 0);
    CHECK(contents.slots.size() == taken);
  }
  file.set_allocate_for_testing(nullptr);
  file.Abandon();
}

TEST_CASE("a file system without fallocate works") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger";
  static LedgerFile file;
  file.set_allocate_for_testing(UnsupportedAllocate);
  REQUIRE(file.Create(path.c_str(), 0) == 0);
  CHECK(AppendMany(file, 50'000) == 50'000);
  file.Finish(1, true);
  CHECK(Read(path).slots.size() == 50'000);
  file.set_allocate_for_testing(nullptr);
  file.Abandon();
}

TEST_CASE("a limit on file sizes does not end the job with SIGXFSZ") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger";
  const int status = InChild([&] {
    const rlimit limit = {4 * kMiB, 4 * kMiB};
    setrlimit(RLIMIT_FSIZE, &limit);
    static LedgerFile file;
    if (file.Create(path.c_str(), 0) != 0) _exit(1);
    std::uint64_t taken = 0;
    while (Append(file, 1, taken)) ++taken;
    file.Finish(1, true);
    _exit(taken > 10'000 ? 0 : 2);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(LossOf(Read(path).header, Loss::kDiskFull) == 1);
}

TEST_CASE("a program that closes all descriptors loses no data of its own, and ends the ledger") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger", other = folder.path() / "other";
  const int status = InChild([&] {
    static LedgerFile file;
    if (file.Create(path.c_str(), 0) != 0) _exit(1);
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    // The program's own file gets every number in turn, ours among them.
    std::ofstream(other) << "precious";
    const int fd = open(other.c_str(), O_RDWR);
    for (int number = 600; number < 800; ++number) dup2(fd, number);
    std::uint64_t taken = 0;
    while (taken < 100'000 && Append(file, 1, taken)) ++taken;
    file.Finish(1, true);
    _exit(file.exhausted() ? 0 : 2);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(testing::ReadFile(other) == "precious");
  const Contents contents = Read(path);
  CHECK(LossOf(contents.header, Loss::kInternal) >= 1);
  CHECK(contents.slots.size() > 1000);
}

TEST_CASE("eight threads: every record once, each thread's in order") {
  const TemporaryFolder folder;
  const std::string path = folder.path() / "a.ledger";
  static LedgerFile file;
  REQUIRE(file.Create(path.c_str(), 0) == 0);
  constexpr std::uint32_t kThreads = 8;
  constexpr std::uint64_t kEach = 100'000;
  std::atomic<std::uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        if (!Append(file, thread, i)) ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  file.Finish(1, true);
  CHECK(refused == 0);
  const Contents contents = Read(path);
  REQUIRE(contents.slots.size() == kThreads * kEach);
  std::uint64_t next[kThreads] = {};
  std::uint64_t wrong = 0;
  for (const record::Block& slot : contents.slots) {
    if (!Committed(slot) || !Whole(slot) || slot.commit.thread >= kThreads) {
      ++wrong;
      continue;
    }
    if ((slot.address & 0xFFFFFFFFu) != next[slot.commit.thread]++) ++wrong;
  }
  CHECK(wrong == 0);
  file.Abandon();
}

TEST_CASE("the file ends while threads still write: no signal, and what is in it is whole") {
  for (int attempt = 0; attempt < 20; ++attempt) {
    const TemporaryFolder folder;
    const std::string path = folder.path() / "a.ledger";
    const int status = InChild([&] {
      static LedgerFile file;
      if (file.Create(path.c_str(), 0) != 0) _exit(1);
      for (std::uint32_t thread = 0; thread < 4; ++thread) {
        std::thread([thread] {
          for (std::uint64_t i = 0;; ++i) Append(file, thread, i);
        }).detach();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      file.Finish(1, true);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      _exit(0);
    });
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
    const Contents contents = Read(path);
    std::uint64_t torn = 0;
    for (const record::Block& slot : contents.slots) torn += Committed(slot) && !Whole(slot);
    CHECK(torn == 0);
    CHECK(contents.header.clean_end == 1);
  }
}

TEST_CASE("a process killed at a random instant loses at most the record that each thread was writing") {
  constexpr int kAttempts = 50;
  constexpr std::uint32_t kThreads = 4;
  std::mt19937 random(20260101);
  std::uniform_int_distribution<int> microseconds(0, 20'000);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const TemporaryFolder folder;
    const std::string path = folder.path() / "a.ledger";
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      static LedgerFile file;
      if (file.Create(path.c_str(), 0) != 0) _exit(1);
      if (write(ready[1], "x", 1) != 1) _exit(1);
      for (std::uint32_t thread = 0; thread < kThreads; ++thread) {
        std::thread([thread] {
          for (std::uint64_t i = 0;; ++i) Append(file, thread, i);
        }).detach();
      }
      pause();
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    close(ready[0]);
    close(ready[1]);
    REQUIRE(WIFSIGNALED(status));

    const Contents contents = Read(path);
    CHECK(contents.header.clean_end == 0);
    std::uint64_t missing = contents.header.reserved - contents.slots.size(), torn = 0;
    for (const record::Block& slot : contents.slots) {
      missing += !Committed(slot);
      torn += Committed(slot) && !Whole(slot);
    }
    CHECK(missing <= kThreads);
    CHECK(torn == 0);
  }
}

}  // namespace
}  // namespace ledger
