#include "tools/gpuledger/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/gpuledger/exit_codes.h"
#include "tools/gpuledger/process.h"

namespace gpuledger {
namespace {

namespace fs = std::filesystem;

// A directory of its own, gone with the test.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/gpuledger_test.XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path operator/(const std::string& name) const { return path_ / name; }
  void Write(const std::string& name, const std::string& text, bool executable = false) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    if (executable) chmod((path_ / name).c_str(), 0755);
  }

 private:
  fs::path path_;
};

const Installation kInstallation{"/i/lib/libledger.so", "/i/lib/simgpu"};

TEST_CASE("preloads that were there stay first, in their order") {
  Environment environment{{"LD_PRELOAD", "liba.so libb.so:libc.so"}};
  PrepareEnvironment(kInstallation, {.out = "/o"}, environment);
  CHECK(environment["LD_PRELOAD"] == "liba.so libb.so:libc.so:/i/lib/libledger.so");
  CHECK(environment["LEDGER_DIR"] == "/o");
  CHECK(environment.count("CUDA_VISIBLE_DEVICES") == 0);
  CHECK(environment.count("LD_LIBRARY_PATH") == 0);
}

TEST_CASE("a simulated run sees N devices, the stand-ins before anything else, and its own node") {
  Environment environment{{"LD_LIBRARY_PATH", "/x"}, {"HF_HUB_OFFLINE", "0"}, {"CUDA_VISIBLE_DEVICES", "7"}};
  PrepareEnvironment(
      kInstallation,
      {.out = "/o", .devices = 3, .profile = "tiny", .node = "n", .stand_ins = {"/i/lib/simgpu/libcudart.so.13"}},
      environment);
  CHECK(environment["LD_PRELOAD"] == "/i/lib/libledger.so:/i/lib/simgpu/libcudart.so.13");
  CHECK(environment["LD_LIBRARY_PATH"] == "/i/lib/simgpu:/x");
  CHECK(environment["CUDA_VISIBLE_DEVICES"] == "0,1,2");
  CHECK(environment["SIMGPU_DEVICES"] == "3");
  CHECK(environment["SIMGPU_PROFILE"] == "tiny");
  CHECK(environment["SIMGPU_NODE"] == "n");
  CHECK(environment["TRITON_LIBCUDA_PATH"] == "/i/lib/simgpu");
  CHECK(environment["HF_HUB_OFFLINE"] == "0");
}

TEST_CASE("the interpreter is the command, or stands in its first line") {
  const Folder folder;
  folder.Write("bin/python3", "binary", true);
  folder.Write("bin/torchrun", "#!" + (folder / "bin/python3").string() + "\nimport torch\n", true);
  folder.Write("bin/by_env", "#!/usr/bin/env python3\n", true);
  folder.Write("bin/shell", "#!/bin/sh\n", true);
  folder.Write("bin/not_executable", "#!/bin/sh\n");
  const std::string path = "/nowhere:" + (folder / "bin").string();
  const std::string python = (folder / "bin/python3").string();
  CHECK(InterpreterOf("python3", path) == python);
  CHECK(InterpreterOf(python, "") == python);
  CHECK(InterpreterOf("torchrun", path) == python);
  CHECK(InterpreterOf("by_env", path) == python);
  CHECK(InterpreterOf("shell", path).empty());
  CHECK(InterpreterOf("not_executable", path).empty());
  CHECK(InterpreterOf("missing", path).empty());
}

TEST_CASE("stand-ins are preloaded for what lies in NVIDIA's wheels, and for nothing else") {
  const Folder folder;
  folder.Write("simgpu/libcudart.so.13", "");
  folder.Write("simgpu/libcuda.so.1", "");
  folder.Write("site/nvidia/cu13/lib/libcudart.so.13", "");
  folder.Write("site/nvidia/cu13/lib/libother.so", "");
  const std::string simgpu = (folder / "simgpu").string();
  CHECK(StandInsToPreload(simgpu, (folder / "site").string()) == std::vector<std::string>{simgpu + "/libcudart.so.13"});
  CHECK(StandInsToPreload(simgpu, (folder / "nowhere").string()).empty());
}

TEST_CASE("a command's status is passed on") {
  Environment environment = CurrentEnvironment();
  CHECK(RunProcess({"/bin/sh", "-c", "exit 7"}, environment) == 7);
  CHECK(RunProcess({"/bin/sh", "-c", "kill -9 $$"}, environment) == 128 + 9);
  CHECK(RunProcess({"/no/such/command"}, environment) == kNotFound);
  CHECK(RunProcess({"/"}, environment) == kCannotRun);
  environment["GPULEDGER_TEST"] = "x";
  CHECK(RunProcess({"/bin/sh", "-c", "test \"$GPULEDGER_TEST\" = x"}, environment) == 0);
}

TEST_CASE("a signal to us goes on to the command") {
  const pid_t self = getpid();
  // The command tells us to end, and lives on until we told it so.
  const std::string script =
      "trap 'exit 9' TERM; kill -TERM " + std::to_string(self) + "; while :; do sleep 0.05; done";
  CHECK(RunProcess({"/bin/sh", "-c", script}, CurrentEnvironment()) == 9);
}

TEST_CASE("a command's output") {
  CHECK(OutputOf({"/bin/echo", "hello"}) == "hello\n");
  CHECK(OutputOf({"/bin/false"}).empty());
  CHECK(OutputOf({"/no/such/command"}).empty());
}

}  // namespace
}  // namespace gpuledger
