#include "tools/gpuledger/environment.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gpuledger {
namespace {

namespace fs = std::filesystem;

void Default(Environment& environment, const std::string& name, const std::string& value) {
  environment.try_emplace(name, value);
}

std::string FindInPath(const std::string& command, const std::string& path_variable) {
  if (absl::StrContains(command, '/')) return access(command.c_str(), X_OK) == 0 ? command : "";
  for (const absl::string_view folder : absl::StrSplit(path_variable, ':')) {
    const std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", command);
    std::error_code error;
    if (fs::is_regular_file(candidate, error) && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

bool IsPython(const std::string& path) { return absl::StartsWith(fs::path(path).filename().string(), "python"); }

std::vector<fs::path> FilesIn(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

absl::StatusOr<Installation> FindInstallation(bool simulated) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (error) return absl::NotFoundError(absl::StrCat("/proc/self/exe: ", error.message(), "; is /proc mounted?"));
  const fs::path lib = self.parent_path().parent_path() / "lib";
  const Installation installation{(lib / "libledger.so").string(), (lib / "simgpu").string()};
  if (!fs::exists(installation.library, error)) {
    return absl::NotFoundError(absl::StrCat(installation.library,
                                            ": the recorder is not there; it is expected beside gpuledger, as "
                                            "scripts/build leaves it"));
  }
  if (simulated && !fs::exists(fs::path(installation.simgpu) / "libcuda.so.1", error)) {
    return absl::NotFoundError(absl::StrCat(installation.simgpu,
                                            ": the simulated platform is not there; build with "
                                            "-DLEDGER_BUILD_SIMGPU=ON, as scripts/build does"));
  }
  return installation;
}

std::string AppendPath(const std::string& list, const std::string& path) {
  return list.empty() ? path : absl::StrCat(list, ":", path);
}

void PrepareEnvironment(const Installation& installation, const LaunchOptions& options, Environment& environment) {
  // Ours comes last among those that were there, and before the stand-ins, whose calls it is to see.
  std::string& preload = environment["LD_PRELOAD"];
  preload = AppendPath(preload, installation.library);
  environment["LEDGER_DIR"] = options.out;
  if (options.devices == 0) return;
  for (const std::string& stand_in : options.stand_ins) preload = AppendPath(preload, stand_in);
  std::string& libraries = environment["LD_LIBRARY_PATH"];
  libraries = libraries.empty() ? installation.simgpu : absl::StrCat(installation.simgpu, ":", libraries);
  std::string visible = "0";
  for (int device = 1; device < options.devices; ++device) absl::StrAppend(&visible, ",", device);
  // As many devices as are asked for, whatever the surroundings say: a framework that sees more takes more.
  environment["CUDA_VISIBLE_DEVICES"] = visible;
  environment["SIMGPU_DEVICES"] = absl::StrCat(options.devices);
  environment["SIMGPU_PROFILE"] = options.profile;
  environment["SIMGPU_NODE"] = options.node;
  environment["TRITON_LIBCUDA_PATH"] = installation.simgpu;
  // A dry run should neither wait for a network nor fill the machine with threads; who wants otherwise has set it.
  Default(environment, "HF_HUB_OFFLINE", "1");
  Default(environment, "TOKENIZERS_PARALLELISM", "false");
  Default(environment, "OMP_NUM_THREADS", "1");
}

std::string InterpreterOf(const std::string& command, const std::string& path_variable) {
  const std::string found = FindInPath(command, path_variable);
  if (found.empty() || IsPython(found)) return found;
  std::ifstream script(found, std::ios::binary);
  std::string line;
  constexpr std::size_t kMaxLine = 4096;
  line.resize(kMaxLine);
  script.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(script.gcount()));
  line = line.substr(0, line.find('\n'));
  if (!absl::StartsWith(line, "#!")) return "";
  std::vector<std::string> words = absl::StrSplit(line.substr(2), ' ', absl::SkipEmpty());
  if (words.empty()) return "";
  // "#!/usr/bin/env python3"
  const bool env = fs::path(words[0]).filename() == "env" && words.size() > 1;
  const std::string interpreter = env ? FindInPath(words[1], path_variable) : words[0];
  return IsPython(interpreter) ? interpreter : "";
}

std::vector<std::string> StandInsToPreload(const std::string& simgpu, const std::string& site_packages) {
  std::set<std::string> in_wheels;
  for (const fs::path& wheel : FilesIn(fs::path(site_packages) / "nvidia")) {
    for (const fs::path& library : FilesIn(wheel / "lib")) in_wheels.insert(library.filename().string());
  }
  std::vector<std::string> stand_ins;
  for (const fs::path& stand_in : FilesIn(simgpu)) {
    if (in_wheels.count(stand_in.filename().string()) != 0) stand_ins.push_back(stand_in.string());
  }
  return stand_ins;
}

}  // namespace gpuledger
