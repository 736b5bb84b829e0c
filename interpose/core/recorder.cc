#include "interpose/core/recorder.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>

#include "interpose/core/definitions.h"
#include "interpose/core/line.h"
#include "interpose/core/options.h"
#include "interpose/core/process.h"
#include "interpose/core/thread_state.h"

// The linker's own marks around this library's zero-initialised data.
extern "C" [[gnu::visibility("hidden")]] char __bss_start;
extern "C" [[gnu::visibility("hidden")]] char _end;

namespace ledger {

constinit thread_local ThreadState t_thread = {};

namespace {

using record::Loss;

constinit std::atomic<State> g_state_before_load{State::kDormant};
constinit std::atomic<State>* g_state = &g_state_before_load;
constinit LedgerFile g_file;
constinit pid_t g_file_pid = 0;
constinit std::atomic<std::uint32_t> g_file_generation{0};
constinit EarlyReading g_load_reading = {};
constinit std::atomic<std::uint64_t> g_losses_before_file[static_cast<std::size_t>(Loss::kCount)] = {};
static_assert(std::is_trivially_destructible_v<std::atomic<State>>);

// How many threads are in a call on behalf of a communicator, and which it is, if it has been only one since the first.
constinit std::atomic<std::uint32_t> g_communicator_threads{0};
constinit std::atomic<std::uint64_t> g_single_communicator{0};

constexpr int kMadvWipeOnFork = 18;  // MADV_WIPEONFORK, Linux 4.14

// Enters our own cold work: system calls may change errno, and hooks that are reached from it must not record.
class RecorderWork {
 public:
  RecorderWork() : outer_(t_thread.in_recorder) { t_thread.in_recorder = true; }
  ~RecorderWork() { t_thread.in_recorder = outer_; }
  RecorderWork(const RecorderWork&) = delete;
  RecorderWork& operator=(const RecorderWork&) = delete;

 private:
  ErrnoSaver errno_saver_;
  bool outer_;
};

void AppendAnchor() {
  const ClockReading now = ReadClocks();
  record::ClockAnchor anchor = {};
  anchor.commit.kind = static_cast<std::uint16_t>(record::Kind::kClock);
  anchor.commit.device = record::kNoDevice;
  anchor.ticks = now.ticks;
  anchor.monotonic_ns = now.monotonic_ns;
  anchor.realtime_ns = now.realtime_ns;
  AppendRaw(anchor.commit, &anchor);
}

void NotePeakMemory() {
  const std::uint64_t bytes =
      g_file.resident_bytes() + DefinitionBytes() + static_cast<std::uint64_t>(&_end - &__bss_start);
  std::uint64_t& peak = g_file.header()->recorder_peak_rss_bytes;
  peak = std::max(peak, bytes);
}

// mkdir -p. Returns 0 or an errno value.
int MakeDirectories(const char* path) {
  Line<kMaxPathBytes> part;
  const std::string_view whole(path);
  for (std::size_t begin = 0; begin < whole.size();) {
    std::size_t end = begin;
    while (end < whole.size() && whole[end] == '/') ++end;
    while (end < whole.size() && whole[end] != '/') ++end;
    part << std::string_view(path + begin, end - begin);
    begin = end;
    // Only the last refusal counts: a parent may exist and not be ours to write.
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && begin == whole.size()) return errno;
  }
  return 0;
}

// Process ids repeat, in containers above all: an existing file is never touched, the next free number is taken.
int CreateFile(std::uint32_t rank, Line<kMaxPathBytes>& path) {
  const Options& options = CurrentOptions();
  if (const int error = MakeDirectories(options.directory); error != 0) {
    path << options.directory;
    return error;
  }
  constexpr std::uint64_t kAttempts = 1000;
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    path.Clear();
    if (options.directory[0] != '/') {
      char here[kMaxPathBytes];
      if (getcwd(here, sizeof(here)) != nullptr) path << here << "/";
    }
    path << options.directory << "/rank" << rank << ".pid" << static_cast<std::uint64_t>(getpid());
    if (attempt > 0) path << "." << attempt;
    path << ".ledger";
    if (path.cut()) return ENAMETOOLONG;
    const int error = g_file.Create(path.c_str(), options.max_bytes);
    if (error != EEXIST) return error;
  }
  return EEXIST;
}

void SayItFailed(std::string_view path, int error) {
  Line<kMaxPathBytes + 256> message;
  message << "cannot write " << path << ": " << strerror(error)
          << "; this process goes on without being recorded (LEDGER_DIR names a folder with room for it)";
  Say(message.view());
}

void FillHeader(const record::FileHeader& process, const ClockReading& load, const ClockReading& opened) {
  record::FileHeader& header = *g_file.header();
  header.flags = process.flags;
  header.pid = process.pid;
  header.parent_pid = process.parent_pid;
  header.rank = process.rank;
  header.local_rank = process.local_rank;
  header.world_size = process.world_size;
  header.load_ticks = load.ticks;
  header.load_monotonic_ns = load.monotonic_ns;
  header.load_realtime_ns = load.realtime_ns;
  header.open_ticks = opened.ticks;
  header.open_monotonic_ns = opened.monotonic_ns;
  header.open_realtime_ns = opened.realtime_ns;
  memcpy(header.recorder_version, process.recorder_version, sizeof(header.recorder_version));
  memcpy(header.host, process.host, sizeof(header.host));
  memcpy(header.program, process.program, sizeof(header.program));
  memcpy(header.run_id, process.run_id, sizeof(header.run_id));
}

bool OpenLedger() {
  if (g_file_pid != 0 && g_file_pid != getpid()) ForgetParent();  // a child of a bare clone
  ReadOptions(MutableOptions());
  if (CurrentOptions().off) return false;
  const record::TicksSource source = ChooseTicksSource();
  static constinit record::FileHeader process = {};  // too large for a stack that may be a small thread's
  memset(&process, 0, sizeof(process));
  DescribeProcess(process);

  if (!LockDefinitions()) return false;
  Line<kMaxPathBytes> path;
  const int error = CreateFile(static_cast<std::uint32_t>(std::max(process.rank, 0)), path);
  if (error == 0) {
    g_file_pid = getpid();
    g_file_generation.fetch_add(1, std::memory_order_relaxed);
    g_file.header()->ticks_source = source;
    FillHeader(process, FromEarly(g_load_reading), ReadClocks());
    for (std::size_t i = 0; i < static_cast<std::size_t>(Loss::kCount); ++i) {
      g_file.Count(static_cast<Loss>(i), g_losses_before_file[i].exchange(0));
    }
    AppendAnchor();
    WriteAllDefinitions();
  }
  UnlockDefinitions();
  if (error != 0) {
    SayItFailed(path.view(), error);
    return false;
  }
  DescribeRun();
  NotePeakMemory();
  if (CurrentOptions().verbose > 0) {
    Line<kMaxPathBytes + 64> message;
    message << "recording to " << path.view();
    Say(message.view());
  }
  return true;
}

// Another thread is opening the file: wait for it, but never for good.
bool WaitForOpening() {
  constexpr int kWaits = 40'000;
  constexpr long kWaitNs = 50'000;  // 2 s in all
  for (int wait = 0; wait < kWaits && g_state->load(std::memory_order_acquire) == State::kOpening; ++wait) {
    const timespec pause = {0, kWaitNs};
    nanosleep(&pause, nullptr);
  }
  return Active();
}

[[gnu::cold, gnu::noinline]] void AfterGrowth() {
  RecorderWork work;
  AppendAnchor();
  NotePeakMemory();
}

[[gnu::cold, gnu::noinline]] void AfterDrop() {
  State active = State::kActive;
  if (!g_file.exhausted() || !g_state->compare_exchange_strong(active, State::kStopped)) return;
  RecorderWork work;
  g_file.header()->end_ticks = Ticks();
  Say(g_file.header()->losses[static_cast<std::size_t>(Loss::kFileLimit)] > 0
          ? "the ledger has reached LEDGER_MAX_BYTES; recording stops, the program goes on"
          : "the ledger's file cannot grow (disk full?); recording stops, the program goes on");
}

}  // namespace

std::atomic<State>& ProcessState() { return *g_state; }
LedgerFile& File() { return g_file; }
std::uint32_t FileGeneration() { return g_file_generation.load(std::memory_order_relaxed); }
void SetLoadReading(const EarlyReading& reading) { g_load_reading = reading; }

void PlaceStateForForks() {
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  if (madvise(page, 4096, kMadvWipeOnFork) != 0) {
    munmap(page, 4096);  // an older kernel: the fork handler alone must do
    return;
  }
  auto* const state = static_cast<std::atomic<State>*>(page);
  state->store(g_state->load());
  g_state = state;
}

bool Active() { return g_state->load(std::memory_order_acquire) == State::kActive; }

bool Wake() {
  State state = g_state->load(std::memory_order_acquire);
  if (state == State::kActive) return true;
  if (t_thread.in_recorder || (state != State::kDormant && state != State::kOpening)) return false;
  RecorderWork work;
  if (state == State::kDormant && g_state->compare_exchange_strong(state, State::kOpening)) {
    g_state->store(OpenLedger() ? State::kActive : State::kOff, std::memory_order_release);
    return Active();
  }
  return WaitForOpening();
}

void Pause() {
  if (!Active()) return;
  record::Range record = {};
  record.commit.kind = static_cast<std::uint16_t>(record::Kind::kPause);
  record.commit.layer = record::Layer::kApi;
  record.commit.device = record::kNoDevice;
  record.scope = CurrentScope();
  Append(record);
  State active = State::kActive;
  g_state->compare_exchange_strong(active, State::kPaused);
}

void Resume() {
  State paused = State::kPaused;
  if (!g_state->compare_exchange_strong(paused, State::kActive)) return;
  record::Range record = {};
  record.commit.kind = static_cast<std::uint16_t>(record::Kind::kResume);
  record.commit.layer = record::Layer::kApi;
  record.commit.device = record::kNoDevice;
  record.scope = CurrentScope();
  Append(record);
}

void Flush() {
  RecorderWork work;
  g_file.Sync();
}

std::uint32_t ThreadId() {
  ThreadState& thread = t_thread;
  if (thread.id == 0) [[unlikely]]
    thread.id = static_cast<std::uint32_t>(syscall(SYS_gettid));
  return thread.id;
}

bool AppendRaw(record::Commit commit, const void* record) {
  commit.thread = ThreadId();
  if (!g_file.Append(commit, record)) [[unlikely]] {
    AfterDrop();
    return false;
  }
  if (g_file.TakeGrowth()) [[unlikely]]
    AfterGrowth();
  return true;
}

void Count(Loss loss) {
  if (FileIsOpen()) {
    g_file.Count(loss);
  } else {
    g_losses_before_file[static_cast<std::size_t>(loss)].fetch_add(1, std::memory_order_relaxed);
  }
}

void NoteSetting(std::string_view key, std::string_view value) {
  if (!FileIsOpen()) return;
  record::Setting setting = {};
  setting.commit.kind = static_cast<std::uint16_t>(record::Kind::kSetting);
  setting.commit.device = record::kNoDevice;
  setting.key = InternText(key);
  setting.value = InternText(value);
  Append(setting);
}

std::uint64_t ExchangeCommunicator(std::uint64_t communicator) {
  const std::uint64_t previous = t_thread.communicator;
  t_thread.communicator = communicator;
  if (previous == 0 && communicator != 0) {
    const bool alone = g_communicator_threads.fetch_add(1, std::memory_order_acq_rel) == 0;
    g_single_communicator.store(alone ? communicator : 0, std::memory_order_release);
  } else if (previous != 0 && communicator == 0) {
    g_communicator_threads.fetch_sub(1, std::memory_order_acq_rel);
  }
  return previous;
}

std::uint64_t CurrentCommunicator(std::uint32_t owner) {
  if (t_thread.communicator != 0) return t_thread.communicator;
  if (g_communicator_threads.load(std::memory_order_acquire) != 1 || !TextOf(owner).starts_with("libnccl")) return 0;
  return g_single_communicator.load(std::memory_order_acquire);
}

void ForgetParent() {
  g_file.Abandon();
  ResetDefinitionLock();
  g_communicator_threads = t_thread.communicator != 0 ? 1 : 0;  // the only thread that is left
  t_thread.id = 0;
  g_file_pid = 0;
}

void EndLedger() {
  // A child of vfork shares our memory and may (wrongly) call exit: the file is its parent's.
  if (!FileIsOpen() || g_file_pid != getpid()) return;
  RecorderWork work;
  const State before = g_state->exchange(State::kStopped);
  const bool whole = before == State::kActive || before == State::kPaused;
  if (whole) AppendAnchor();
  NotePeakMemory();
  g_file.Finish(before == State::kStopped ? g_file.header()->end_ticks : Ticks(), whole);
}

HookGuard::HookGuard() { ++t_thread.hook_depth; }
HookGuard::~HookGuard() { --t_thread.hook_depth; }
bool HookGuard::outermost() const { return t_thread.hook_depth == 1; }

ErrnoSaver::ErrnoSaver() : saved_(errno) {}
ErrnoSaver::~ErrnoSaver() { errno = saved_; }

void Say(std::string_view message) {
  Line<kMaxPathBytes + 512> line;
  line << "libledger: " << message << "\n";
  // One write, so that the lines of eight ranks don't mix. There is nobody to tell that stderr is closed.
  if (write(STDERR_FILENO, line.view().data(), line.view().size()) < 0) return;
}

}  // namespace ledger
