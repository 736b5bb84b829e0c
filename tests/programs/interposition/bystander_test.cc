// Programs that inherit LD_PRELOAD and have nothing to do with CUDA: nothing changes for them, and they leave no file.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/programs/run_program.h"

namespace ledger::testing {
namespace {

const std::string kPrograms = PROGRAM_DIR;

void Unaffected(const std::vector<std::string>& command) {
  INFO(command[0]);
  const Outcome without = Run(command, {});
  const Outcome with = Run(command, {{"LD_PRELOAD", LEDGER_LIBRARY}});
  CHECK(with.status == without.status);
  CHECK(with.output == without.output);
  CHECK(with.errors == without.errors);
  CHECK(with.ledgers.empty());
}

bool Exists(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

TEST_CASE("ordinary programs are unaffected") {
  Unaffected({"true"});
  Unaffected({"false"});
  Unaffected({"sh", "-c", "echo out; echo err >&2; exit 3"});
  Unaffected({"gcc", "--version"});
  Unaffected({"sh", "-c", "echo 'int main(void) { return 0; }' | gcc -x c - -o /dev/null"});
  Unaffected({"python3", "-c", "import subprocess, sys; sys.exit(subprocess.call(['true']))"});
}

TEST_CASE("a static program and one of another C library are unaffected") {
  Unaffected({kPrograms + "/static_program"});
  if (Exists(kPrograms + "/musl_program")) {
    Unaffected({kPrograms + "/musl_program"});
  } else {
    WARN("SKIP: no musl-gcc");
  }
}

TEST_CASE("a set-user-id program is unaffected") {
  // The loader ignores a preload with a slash there; what must not happen is that it complains about ours alone.
  const TemporaryFolder folder;
  const std::string program = folder.path() / "setuid";
  std::filesystem::copy_file("/bin/true", program);
  if (geteuid() != 0 || chmod(program.c_str(), 04755) != 0) {
    WARN("SKIP: needs to be root to make a set-user-id program");
    return;
  }
  Unaffected({program});
}

// The first of the folders that has the tool; empty: none.
std::string FindTool(const std::string& tool) {
  std::istringstream folders(CUDA_TOOL_FOLDERS);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (Exists(folder + "/" + tool)) return folder + "/" + tool;
  }
  return {};
}

constexpr char kPtx[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry Nothing(.param .u64 p) { ret; }\n";

TEST_CASE("the CUDA compilers are unaffected") {
  for (const char* tool : {"ptxas", "nvcc", "cuobjdump"}) {
    const std::string path = FindTool(tool);
    if (path.empty()) {
      WARN("SKIP: no " << tool << " in " << CUDA_TOOL_FOLDERS);
      continue;
    }
    Unaffected({path, "--version"});
  }
  const std::string ptxas = FindTool("ptxas");
  if (ptxas.empty()) return;
  const TemporaryFolder folder;
  const std::string source = folder.path() / "nothing.ptx";
  const std::string binary = folder.path() / "nothing.cubin";
  std::ofstream(source) << kPtx;
  Unaffected({ptxas, "--gpu-name", "sm_80", source, "-o", binary});
  CHECK(std::filesystem::exists(binary));
  Unaffected({ptxas, "--gpu-name", "sm_80", "/nowhere.ptx", "-o", binary});
  if (const std::string cuobjdump = FindTool("cuobjdump"); !cuobjdump.empty()) Unaffected({cuobjdump, "-elf", binary});
}

}  // namespace
}  // namespace ledger::testing
