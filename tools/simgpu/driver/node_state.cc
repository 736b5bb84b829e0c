#include "tools/simgpu/driver/node_state.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace simgpu {
namespace {

constexpr std::size_t kSlots = 256;
constexpr std::uint64_t kMagic = 0x31656d75706d6973;  // "simpume1"

// In clock ticks since boot: with the pid, it tells a process from a later one of the same pid. 0: no such process.
std::uint64_t StartTime(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t bytes = read(fd, text, sizeof text - 1);
  close(fd);
  if (bytes <= 0) return 0;
  text[bytes] = '\0';
  const char* field = std::strrchr(text, ')');  // the name may hold anything, so count from its end
  if (field == nullptr) return 0;
  ++field;
  if (field[0] == ' ' && (field[1] == 'Z' || field[1] == 'X')) return 0;  // dead, waiting to be reaped
  // Here begins the third field; the start time is the 22nd.
  for (int at = 3; at < 22 && field != nullptr; ++at) field = std::strchr(field + 1, ' ');
  return field == nullptr ? 0 : std::strtoull(field + 1, nullptr, 10);
}

}  // namespace

struct NodeState::Slot {
  std::atomic<pid_t> pid;  // 0: free
  std::atomic<std::uint64_t> start_time;
  std::atomic<bool> leaving;  // its process is in its last exit handlers
  std::atomic<std::uint64_t> used[kMaxDevices];

  bool Alive() const {
    const pid_t owner = pid.load();
    if (owner == 0) return false;
    if (owner == getpid()) return true;
    if (kill(owner, 0) != 0 && errno == ESRCH) return false;
    return StartTime(owner) == start_time.load();
  }
};

struct NodeState::Shared {
  std::atomic<std::uint64_t> magic;
  Slot slots[kSlots];
};

// An exclusive lock among the node's processes, bounded by SIMGPU_TIMEOUT_S. Within the process, the driver's own lock
// serialises.
class NodeState::Lock {
 public:
  explicit Lock(int fd) : fd_(fd) {
    if (fd_ < 0) return;
    timespec pause = {0, 20'000};
    const time_t deadline = time(nullptr) + static_cast<time_t>(GetOptions().timeout_s);
    while (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) break;
      if (time(nullptr) > deadline) {
        Say("the node's state (SIMGPU_NODE=%s) has been locked by another process for %llu s; is one stopped? Going on "
            "without the lock",
            GetOptions().node.c_str(), static_cast<unsigned long long>(GetOptions().timeout_s));
        break;
      }
      nanosleep(&pause, nullptr);
      pause.tv_nsec = std::min(pause.tv_nsec * 2, 2'000'000L);
    }
  }
  ~Lock() {
    if (fd_ >= 0) flock(fd_, LOCK_UN);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int fd_;
};

bool NodeState::Open(const char* name) {
  std::string file = "/simgpu.";
  for (const char* c = name; *c != '\0'; ++c) file += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '_';
  // The last process to leave removes the file, perhaps between our open and our lock: then begin again.
  for (int tries = 0; tries < 100; ++tries) {
    fd_ = shm_open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ < 0) {
      Say("/dev/shm%s: cannot open the node's state (%s); unset SIMGPU_NODE to run alone", file.c_str(),
          std::strerror(errno));
      return false;
    }
    const Lock lock(fd_);
    struct stat status;
    if (fstat(fd_, &status) != 0 || status.st_nlink == 0) {
      close(fd_);
      continue;
    }
    if (static_cast<std::size_t>(status.st_size) < sizeof(Shared) && ftruncate(fd_, sizeof(Shared)) != 0) {
      Say("/dev/shm%s: cannot grow to %zu bytes (%s)", file.c_str(), sizeof(Shared), std::strerror(errno));
      return false;
    }
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) {
      Say("/dev/shm%s: cannot map %zu bytes (%s)", file.c_str(), sizeof(Shared), std::strerror(errno));
      return false;
    }
    shared_ = static_cast<Shared*>(memory);
    if (shared_->magic.load() == 0) shared_->magic = kMagic;
    if (shared_->magic.load() != kMagic) {
      Say("/dev/shm%s: not the state of a simulated node; remove it or choose another SIMGPU_NODE", file.c_str());
      return false;
    }
    return true;
  }
  return false;
}

NodeState* NodeState::Get() {
  static NodeState* const instance = [] {
    auto* state = new NodeState;  // leaked: used from exit handlers
    if (!GetOptions().node.empty()) {
      if (!state->Open(GetOptions().node.c_str())) return static_cast<NodeState*>(nullptr);
      std::atexit(&NodeState::RemoveAtExit);
      return state;
    }
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return static_cast<NodeState*>(nullptr);
    state->shared_ = static_cast<Shared*>(memory);
    return state;
  }();
  return instance;
}

// The last process removes the file. Charges and frees that come later in its exit still find their mapping.
void NodeState::RemoveAtExit() {
  NodeState* state = Get();
  const Lock lock(state->fd_);
  if (state->self_ != nullptr && state->self_->pid.load() == getpid()) state->self_->leaving = true;
  const bool others = std::any_of(std::begin(state->shared_->slots), std::end(state->shared_->slots),
                                  [](const Slot& slot) { return !slot.leaving.load() && slot.Alive(); });
  if (others) return;
  char link[64];
  char path[256];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", state->fd_);
  const ssize_t bytes = readlink(link, path, sizeof path - 1);
  if (bytes <= 0) return;
  path[bytes] = '\0';
  unlink(path);  // already removed ("... (deleted)") by the launcher: nothing to do
}

// Under the lock.
NodeState::Slot* NodeState::Self() {
  if (self_ != nullptr && self_->pid.load() == getpid()) return self_;
  for (Slot& slot : shared_->slots) {
    if (slot.Alive()) continue;
    for (auto& used : slot.used) used = 0;
    slot.leaving = false;
    slot.start_time = StartTime(getpid());
    slot.pid = getpid();
    self_ = &slot;
    return self_;
  }
  Say("more than %zu processes on one node (SIMGPU_NODE=%s)", kSlots, GetOptions().node.c_str());
  return nullptr;
}

std::uint64_t NodeState::SumAlive(int device) {
  std::uint64_t sum = 0;
  for (const Slot& slot : shared_->slots) {
    const std::uint64_t used = slot.used[device].load();
    if (used != 0 && slot.Alive()) sum += used;
  }
  return sum;
}

bool NodeState::Charge(int device, std::uint64_t bytes, std::uint64_t limit) {
  const Lock lock(fd_);
  Slot* self = Self();
  if (self == nullptr) return false;
  const std::uint64_t used = SumAlive(device);
  if (used > limit || bytes > limit - used) return false;
  self->used[device] += bytes;
  return true;
}

void NodeState::Discharge(int device, std::uint64_t bytes) {
  if (self_ != nullptr) self_->used[device] -= bytes;
}

std::uint64_t NodeState::Used(int device) { return SumAlive(device); }

std::uint64_t NodeState::UsedHere(int device) const { return self_ == nullptr ? 0 : self_->used[device].load(); }

std::vector<ProcessUse> NodeState::Processes(int device) {
  std::vector<ProcessUse> processes;
  for (const Slot& slot : shared_->slots) {
    const std::uint64_t used = slot.used[device].load();
    if (used != 0 && slot.Alive()) processes.push_back({slot.pid.load(), used});
  }
  std::sort(processes.begin(), processes.end(), [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return processes;
}

}  // namespace simgpu
