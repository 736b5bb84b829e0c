#include "interpose/core/memory_map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

namespace ledger {
namespace {

constexpr std::size_t kBufferBytes = 8192;  // a line holds a path of 4,096 bytes at most

std::uintptr_t ParseHex(const char*& at, const char* end) {
  std::uintptr_t value = 0;
  for (; at != end; ++at) {
    if (*at >= '0' && *at <= '9') {
      value = value << 4 | static_cast<std::uintptr_t>(*at - '0');
    } else if (*at >= 'a' && *at <= 'f') {
      value = value << 4 | static_cast<std::uintptr_t>(*at - 'a' + 10);
    } else {
      break;
    }
  }
  return value;
}

// "begin-end rwxp offset dev inode   path"
Mapping ParseLine(const char* line, const char* end) {
  Mapping mapping = {};
  const char* at = line;
  mapping.begin = ParseHex(at, end);
  if (at != end) ++at;
  mapping.end = ParseHex(at, end);
  const auto* const path = static_cast<const char*>(memchr(at, '/', static_cast<std::size_t>(end - at)));
  if (path != nullptr) mapping.path = std::string_view(path, static_cast<std::size_t>(end - path));
  constexpr std::string_view kDeleted = " (deleted)";
  if (mapping.path.ends_with(kDeleted)) mapping.path.remove_suffix(kDeleted.size());
  return mapping;
}

}  // namespace

void VisitMappings(MappingVisitor visit, void* context) {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  char buffer[kBufferBytes];
  std::size_t filled = 0;
  for (bool more = true; more;) {
    const ssize_t got = read(fd, buffer + filled, sizeof(buffer) - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
    const char* line = buffer;
    while (more) {
      const auto* const end =
          static_cast<const char*>(memchr(line, '\n', static_cast<std::size_t>(buffer + filled - line)));
      if (end == nullptr) break;
      more = visit(ParseLine(line, end), context);
      line = end + 1;
    }
    filled = static_cast<std::size_t>(buffer + filled - line);
    memmove(buffer, line, filled);
    if (filled == sizeof(buffer)) break;  // not a line of this file's form
  }
  close(fd);
}

std::string_view BaseName(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
  return path;
}

}  // namespace ledger
