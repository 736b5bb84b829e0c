#include "tools/simgpu/nccl/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simgpu::nccl {
namespace {

struct Stat {
  char state = 'X';
  std::uint64_t start_time = 0;
};

// What /proc/PID/stat says; state X (dead) if there is no such process.
Stat ReadStat(std::int32_t pid) {
  char path[48];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  char text[1024];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return {};
  text[size] = '\0';
  // The name in field 2 may itself hold spaces and parentheses, so count from its last closing one.
  const char* cursor = std::strrchr(text, ')');
  if (cursor == nullptr || cursor[1] == '\0') return {};
  cursor += 2;
  Stat stat{.state = *cursor};
  constexpr int kStateField = 3, kStartTimeField = 22;
  for (int field = kStateField; field < kStartTimeField; ++field) {
    cursor = std::strchr(cursor, ' ');
    if (cursor == nullptr) return {};
    ++cursor;
  }
  stat.start_time = std::strtoull(cursor, nullptr, 10);
  return stat;
}

}  // namespace

ProcessIdentity CurrentProcess() {
  const std::int32_t pid = getpid();
  return {.pid = pid, .start_time = ReadStat(pid).start_time};
}

bool IsAlive(const ProcessIdentity& process) {
  const Stat stat = ReadStat(process.pid);
  return stat.state != 'X' && stat.state != 'Z' && stat.start_time == process.start_time;
}

}  // namespace simgpu::nccl
