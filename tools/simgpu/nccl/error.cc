#include "tools/simgpu/nccl/error.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace simgpu::nccl {
namespace {

constexpr std::size_t kMaxText = 1024;
std::mutex last_error_mutex;
char last_error[kMaxText];  // guarded by last_error_mutex: watchdog threads ask about what another thread met

}  // namespace

ncclResult_t Fail(ncclResult_t result, const char* format, ...) {
  char text[kMaxText];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  {
    std::lock_guard lock(last_error_mutex);
    std::memcpy(last_error, text, sizeof text);
  }
  std::fprintf(stderr, "simgpu nccl: %s\n", text);
  return result;
}

const char* LastError() {
  thread_local char copy[kMaxText];
  std::lock_guard lock(last_error_mutex);
  std::memcpy(copy, last_error, sizeof copy);
  return copy;
}

}  // namespace simgpu::nccl
