// `gpuledger adapter build`: compiles the op adapter against an installed PyTorch, and puts it where libledger.so looks for
// one of that version. The adapter is C++ that uses PyTorch's own types, so one is needed per version; it takes a compiler
// and some seconds.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/gpuledger/commands.h"
#include "tools/gpuledger/environment.h"
#include "tools/gpuledger/exit_codes.h"
#include "tools/gpuledger/process.h"

namespace gpuledger {
namespace {

namespace fs = std::filesystem;

constexpr char kFooter[] = R"(libledger.so loads the adapter by itself into processes that run exactly this version of PyTorch; without one, reports
lack ops, saved tensors and requested sizes. It is kept beside libledger.so, or, where that folder cannot be written, in
~/.cache/gpuledger (XDG_CACHE_HOME). Nothing is done when it is there and up to date.

Examples:
  gpuledger adapter build                               for the PyTorch of python3
  gpuledger adapter build --python venv/bin/python
)";

constexpr char kLibraryName[] = "libledger_torch.so";
constexpr char kSourceRoot[] = "interpose/torch/adapter";

struct Arguments {
  std::string python = "python3";
  std::string compiler = "c++";
  std::string cuda_include;
  bool force = false;
};

// The installed PyTorch, found without importing it.
struct Torch {
  std::string version;  // torch.__version__
  fs::path folder;      // site-packages/torch
};

int Complain(const std::string& message) {
  std::fprintf(stderr, "gpuledger: %s\n", message.c_str());
  return kUnreadable;
}

std::optional<Torch> FindTorch(const std::string& python) {
  const std::string said = OutputOf(
      {python, "-c",
       "import importlib.util, pathlib, runpy\n"
       "folder = pathlib.Path(importlib.util.find_spec('torch').submodule_search_locations[0])\n"
       "print(runpy.run_path(str(folder / 'version.py'))['__version__'])\n"
       "print(folder)\n"});
  const std::vector<std::string> lines = absl::StrSplit(said, '\n', absl::SkipEmpty());
  if (lines.size() != 2 || absl::StrContains(lines[0], '/')) return std::nullopt;
  return Torch{lines[0], lines[1]};
}

// Of the installed program: bin/gpuledger, lib/libledger.so, share/gpuledger/adapter.
fs::path InstallationRoot() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
}

std::vector<fs::path> SourcesIn(const fs::path& root) {
  std::vector<fs::path> sources;
  std::error_code error;
  for (fs::directory_iterator entry(root / kSourceRoot, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".cc") sources.push_back(entry->path());
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

// The folder that holds cuda_runtime_api.h, which PyTorch's CUDA headers need; "" when there is none.
std::string FindCudaHeaders(const Arguments& arguments, const Torch& torch, const fs::path& root) {
  std::vector<fs::path> candidates = {arguments.cuda_include};
  for (const char* const variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* const home = std::getenv(variable)) candidates.push_back(fs::path(home) / "include");
  }
  candidates.push_back("/usr/local/cuda/include");
  candidates.push_back(root / "cuda/include");
  std::error_code error;
  for (fs::directory_iterator entry(torch.folder.parent_path() / "nvidia", error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    candidates.push_back(entry->path() / "include");
  }
  for (const fs::path& candidate : candidates) {
    if (!candidate.empty() && fs::exists(candidate / "cuda_runtime_api.h", error)) return candidate.string();
  }
  return "";
}

// A folder for the adapter that can be written.
std::optional<fs::path> TargetFolder(const fs::path& root, const std::string& version) {
  std::vector<fs::path> candidates = {root / "lib"};
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0') {
    candidates.push_back(fs::path(cache) / "gpuledger");
  } else if (const char* const home = std::getenv("HOME")) {
    candidates.push_back(fs::path(home) / ".cache/gpuledger");
  }
  for (const fs::path& candidate : candidates) {
    const fs::path folder = candidate / "adapter" / version;
    std::error_code error;
    fs::create_directories(folder, error);
    if (!error && access(folder.c_str(), W_OK) == 0) return folder;
  }
  return std::nullopt;
}

bool IsUpToDate(const fs::path& library, const fs::path& sources) {
  std::error_code error;
  const fs::file_time_type built = fs::last_write_time(library, error);
  if (error) return false;
  for (fs::recursive_directory_iterator entry(sources, error); !error && entry != fs::recursive_directory_iterator();
       entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_regular_file(ignored) && entry->last_write_time(ignored) > built) return false;
  }
  return !error;
}

// One translation unit of all sources: PyTorch's headers take nearly all of the time, and are read once.
bool WriteUnity(const fs::path& file, const std::vector<fs::path>& sources) {
  std::ofstream unity(file);
  for (const fs::path& source : sources) unity << "#include \"" << kSourceRoot << "/" << source.filename().string() << "\"\n";
  return unity.flush().good();
}

std::vector<std::string> CompilerCommand(const Arguments& arguments, const Torch& torch, const fs::path& root,
                                         const std::string& cuda, const fs::path& unity, const fs::path& library) {
  const std::string lib = (torch.folder / "lib").string();
  // NDEBUG as PyTorch has it: with assertions, its headers give RecordFunction another layout.
  std::vector<std::string> command = {
      arguments.compiler, "-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-fvisibility=hidden", "-ftls-model=initial-exec",
      absl::StrCat("-DLEDGER_TORCH_VERSION=\"", torch.version, "\""), "-I", (root / "share/gpuledger/adapter").string(),
      "-isystem", (torch.folder / "include").string(), "-isystem", (torch.folder / "include/torch/csrc/api/include").string()};
  if (!cuda.empty()) command.insert(command.end(), {"-isystem", cuda, "-DLEDGER_TORCH_CUDA"});
  command.insert(command.end(), {unity.string(), "-o", library.string(), "-Wl,-z,nodelete", "-L", lib, "-ltorch_cpu", "-lc10"});
  if (!cuda.empty()) command.push_back("-lc10_cuda");
  return command;
}

int Build(const Arguments& arguments) {
  const std::optional<Torch> torch = FindTorch(arguments.python);
  if (!torch) return Complain(absl::StrCat(arguments.python, ": finds no PyTorch; name another interpreter with --python"));
  const fs::path root = InstallationRoot();
  const fs::path source_tree = root / "share/gpuledger/adapter";
  const std::vector<fs::path> sources = SourcesIn(source_tree);
  if (sources.empty()) {
    return Complain(absl::StrCat((source_tree / kSourceRoot).string(), ": the adapter's sources are not there; scripts/build lays them out"));
  }
  const std::optional<fs::path> folder = TargetFolder(root, torch->version);
  if (!folder) return Complain("no folder for the adapter can be written; set XDG_CACHE_HOME to one that can");
  const fs::path library = *folder / kLibraryName;
  if (!arguments.force && IsUpToDate(library, source_tree)) {
    std::printf("%s is up to date\n", library.c_str());
    return kOk;
  }
  std::string cuda;
  std::error_code error;
  if (fs::exists(torch->folder / "lib/libc10_cuda.so", error)) {
    cuda = FindCudaHeaders(arguments, *torch, root);
    if (cuda.empty()) {
      return Complain("no cuda_runtime_api.h in CUDA_HOME, /usr/local/cuda or the nvidia wheels; name its folder with --cuda-include");
    }
  }
  // Complete or not there at all, for processes that look for it meanwhile.
  const fs::path unity = *folder / absl::StrCat("adapter.", getpid(), ".cc");
  const fs::path unfinished = *folder / absl::StrCat(kLibraryName, ".", getpid());
  if (!WriteUnity(unity, sources)) return Complain(absl::StrCat(unity.string(), ": cannot write"));
  const int status = RunProcess(CompilerCommand(arguments, *torch, root, cuda, unity, unfinished), CurrentEnvironment());
  fs::remove(unity, error);
  if (status != 0) {
    fs::remove(unfinished, error);
    return Complain(absl::StrCat("the adapter for torch ", torch->version, " does not compile (", arguments.compiler, " gave status ", status,
                                 "); a C++20 compiler is needed, such as g++ 10 or newer (--compiler)"));
  }
  fs::rename(unfinished, library, error);
  if (error) return Complain(absl::StrCat(library.string(), ": ", error.message()));
  std::printf("%s\n", library.c_str());
  return kOk;
}

}  // namespace

void AddAdapterCommand(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* const adapter = app.add_subcommand("adapter", "Make what lets the recorder see into PyTorch");
  adapter->require_subcommand(1);
  CLI::App* const build = adapter->add_subcommand("build", "Compile the op adapter for an installed PyTorch");
  build->footer(kFooter);
  build->add_option("--python", arguments->python, "The interpreter whose PyTorch it is for")->capture_default_str();
  build->add_option("--compiler", arguments->compiler, "The C++ compiler")->capture_default_str();
  build->add_option("--cuda-include", arguments->cuda_include, "Folder of cuda_runtime_api.h, where it is not found by itself");
  build->add_flag("--force", arguments->force, "Compile even if it is up to date");
  build->callback([arguments, &action] { action = [arguments] { return Build(*arguments); }; });
}

}  // namespace gpuledger
