#include "tools/simgpu/driver/options.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace simgpu {
namespace {

std::uint64_t Number(const char* name, std::uint64_t fallback, std::uint64_t limit) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text, &end, 0);
  if (*end != '\0' || errno != 0 || *text == '-' || value > limit) {
    Say("%s: expected a number from 0 to %llu, got '%s'; going on with %llu", name,
        static_cast<unsigned long long>(limit), text, static_cast<unsigned long long>(fallback));
    return fallback;
  }
  return value;
}

std::string Text(const char* name, const std::string& fallback) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : text;
}

Options Read() {
  Options options;
  options.profile = Text("SIMGPU_PROFILE", options.profile);
  options.devices =
      static_cast<int>(Number("SIMGPU_DEVICES", static_cast<std::uint64_t>(options.devices), kMaxDevices));
  options.memory = Number("SIMGPU_MEMORY", options.memory, std::uint64_t{1} << 46);
  options.event_lag = Number("SIMGPU_EVENT_LAG", options.event_lag, 1u << 30);
  options.copy_max = Number("SIMGPU_COPY_MAX", options.copy_max, std::uint64_t{1} << 46);
  options.node = Text("SIMGPU_NODE", options.node);
  options.timeout_s = Number("SIMGPU_TIMEOUT_S", options.timeout_s, 1u << 20);
  options.verbose = Number("SIMGPU_VERBOSE", options.verbose, 2);
  return options;
}

}  // namespace

const Options& GetOptions() {
  static const Options* options = new Options(Read());  // leaked: the driver is called from exit handlers
  return *options;
}

void Say(const char* format, ...) {
  char line[512];
  int used = std::snprintf(line, sizeof line, "simgpu: ");
  va_list arguments;
  va_start(arguments, format);
  used += std::vsnprintf(line + used, sizeof line - static_cast<std::size_t>(used), format, arguments);
  va_end(arguments);
  const std::size_t bytes = std::min(static_cast<std::size_t>(used), sizeof line - 2);
  line[bytes] = '\n';
  if (write(STDERR_FILENO, line, bytes + 1) < 0) return;  // nobody left to tell
}

}  // namespace simgpu
