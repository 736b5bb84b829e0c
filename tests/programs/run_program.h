// Runs a test program as a user would run a job, under libledger.so, and reads what it leaves behind.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/programs/read_ledger.h"

namespace ledger::testing {

struct Outcome {
  int status = -1;  // as a shell has it: 128 + signal for a program that was killed
  std::string output;
  std::string errors;
  std::vector<Ledger> ledgers;
};

// A folder that is gone at the end of the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ledger-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// `environment` is added to this process's own; an empty value takes a variable out.
inline Outcome Run(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment) {
  const TemporaryFolder folder;
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    variables[text.substr(0, text.find('='))] = text.substr(text.find('=') + 1);
  }
  for (const char* inherited : {"LD_PRELOAD", "NVTX_INJECTION64_PATH", "LEDGER_NVTX_NEXT", "LEDGER_OFF"}) {
    variables.erase(inherited);
  }
  variables["LEDGER_DIR"] = (folder.path() / "run").string();
  for (const auto& [name, value] : environment) variables[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) {
    if (!value.empty()) entries.push_back(name + "=" + value);
  }

  std::vector<char*> arguments, pointers;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  for (const std::string& entry : entries) pointers.push_back(const_cast<char*>(entry.c_str()));
  arguments.push_back(nullptr);
  pointers.push_back(nullptr);

  const std::string output = (folder.path() / "stdout").string();
  const std::string errors = (folder.path() / "stderr").string();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  pid_t child = 0;
  const int error = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + command[0] + ": " + std::strerror(error));

  Outcome outcome;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.output = ReadFile(output);
  outcome.errors = ReadFile(errors);
  if (std::filesystem::exists(folder.path() / "run")) {
    for (const auto& file : std::filesystem::directory_iterator(folder.path() / "run")) {
      outcome.ledgers.emplace_back(file.path());
    }
  }
  return outcome;
}

}  // namespace ledger::testing
