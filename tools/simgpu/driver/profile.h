// A device's figures: `key = value  # where the value comes from`, one file per kind of GPU.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace simgpu {

class Profile {
 public:
  // Reads the file. On failure, `error` says what, where, and what was expected.
  static std::optional<Profile> Load(const std::string& path, std::string* error);

  // Finds the file of a profile's name: beside this library in profiles/NAME.profile, or NAME itself if it has a '/'.
  static std::string Find(const std::string& name);

  std::optional<std::uint64_t> Number(const std::string& key) const;
  // The same, for keys that every profile must have: Load has checked those in kRequired.
  std::uint64_t Get(const std::string& key) const { return Number(key).value(); }
  std::uint64_t Get(const std::string& key, std::uint64_t fallback) const { return Number(key).value_or(fallback); }
  // Null where there is no such key.
  const std::string* Text(const std::string& key) const;

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace simgpu
