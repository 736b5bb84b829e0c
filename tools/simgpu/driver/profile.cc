#include "tools/simgpu/driver/profile.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace simgpu {
namespace {

// What the driver itself cannot do without. All are numbers.
constexpr const char* kRequired[] = {
    "memory.total_bytes",       "memory.reserved_bytes", "nvml.total_bytes", "compute_capability.major",
    "compute_capability.minor", "multiprocessors",       "context.bytes",    "module.bytes_per_function",
    "memory.granularity",       "memory.small_limit",    "pool.chunk_bytes", "driver.version",
};

std::string Trim(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

}  // namespace

std::optional<Profile> Profile::Load(const std::string& path, std::string* error) {
  std::ifstream file(path);
  if (!file) {
    *error = path + ": cannot read the profile (" + std::strerror(errno) +
             "); SIMGPU_PROFILE names one of the files in profiles/ beside libcuda.so.1, or is a path with a '/'";
    return std::nullopt;
  }
  Profile profile;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string statement = Trim(line.substr(0, line.find('#')));
    if (statement.empty()) continue;
    const std::size_t equals = statement.find('=');
    const std::string key = Trim(statement.substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : Trim(statement.substr(equals + 1));
    if (key.empty() || value.empty()) {
      *error = path + ":" + std::to_string(number) + ": expected 'key = value', got '" + statement + "'";
      return std::nullopt;
    }
    if (!profile.values_.emplace(key, value).second) {
      *error = path + ":" + std::to_string(number) + ": '" + key + "' was given before";
      return std::nullopt;
    }
  }
  for (const char* key : kRequired) {
    if (!profile.Number(key)) {
      *error = path + ": '" + key + "' is missing or is no number; the other profiles show what it means";
      return std::nullopt;
    }
  }
  return profile;
}

std::string Profile::Find(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  Dl_info self;
  std::string folder = ".";
  if (dladdr(reinterpret_cast<const void*>(&Profile::Find), &self) != 0 && self.dli_fname != nullptr) {
    const std::string path = self.dli_fname;
    const std::size_t slash = path.rfind('/');
    if (slash != std::string::npos) folder = path.substr(0, slash);
  }
  return folder + "/profiles/" + name + ".profile";
}

std::optional<std::uint64_t> Profile::Number(const std::string& key) const {
  const std::string* text = Text(key);
  if (text == nullptr) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(text->c_str(), &end, 0);
  if (*end != '\0' || errno != 0 || text->front() == '-') return std::nullopt;
  return value;
}

const std::string* Profile::Text(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

}  // namespace simgpu
