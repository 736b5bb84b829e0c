// What `gpuledger run` puts into the environment of the command, worked out without touching any process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gpuledger {

using Environment = std::map<std::string, std::string>;

struct Installation {
  std::string library;  // libledger.so
  std::string simgpu;   // the folder of the simulated platform's libraries
};

// Beside the running executable: ../lib/libledger.so and ../lib/simgpu. An error names what is missing and where.
absl::StatusOr<Installation> FindInstallation(bool simulated);

struct LaunchOptions {
  std::string out;                          // absolute
  int devices = 0;                          // simulated ones; 0: the machine's own
  std::string profile = {};                 // of a simulated device
  std::string node = {};                    // name of the simulated node, unique to this run
  std::vector<std::string> stand_ins = {};  // libraries to preload by path, see StandInsToPreload()
};

// `environment` is the one that the command would have had.
void PrepareEnvironment(const Installation& installation, const LaunchOptions& options, Environment& environment);

// "a:b" and "c" → "a:b:c"; LD_PRELOAD may be separated by spaces as well, which is kept.
std::string AppendPath(const std::string& list, const std::string& path);

// The Python interpreter behind a command: itself, or that in the first line of a script such as torchrun. Found by
// PATH; "" where there is none to be seen.
std::string InterpreterOf(const std::string& command, const std::string& path_variable);

// NVIDIA's wheels (site-packages/nvidia/*/lib) are found by torch through its RPATH, which no LD_LIBRARY_PATH beats; a
// library that is already loaded under the same SONAME does. These are the stand-ins for what lies in such wheels.
std::vector<std::string> StandInsToPreload(const std::string& simgpu, const std::string& site_packages);

}  // namespace gpuledger
