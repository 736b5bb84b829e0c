// What the ledger says about the run itself: who (rank, program, host), with what (versions, settings).
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interpose/core/driver_calls.h"
#include "interpose/core/line.h"
#include "interpose/core/memory_map.h"
#include "interpose/core/options.h"
#include "interpose/core/process.h"
#include "interpose/core/real_dlsym.h"
#include "interpose/core/recorder.h"

extern char** environ;

namespace ledger {
namespace {

constexpr std::size_t kCommandBytes = record::kMaxTextBytes;

bool ParseInt(const char* text, std::int32_t& number) {
  std::int64_t value = 0;
  const char* at = text;
  for (; *at >= '0' && *at <= '9' && value <= INT32_MAX; ++at) value = 10 * value + (*at - '0');
  if (at == text || *at != '\0' || value > INT32_MAX) return false;
  number = static_cast<std::int32_t>(value);
  return true;
}

// The first of these variables that holds a number.
template <std::size_t kCount>
bool FromEnvironment(const char* const (&names)[kCount], std::int32_t& number) {
  for (const char* const name : names) {
    const char* const value = getenv(name);
    if (value != nullptr && ParseInt(value, number)) return true;
  }
  return false;
}

// torchrun, Open MPI, MPICH and its relatives, PMIx, Slurm.
constexpr const char* kRankNames[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
constexpr const char* kLocalRankNames[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                           "SLURM_LOCALID"};
constexpr const char* kWorldSizeNames[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"};
constexpr const char* kRunIdNames[] = {"TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid"};

// Settings that change what is allocated, or what the report says about it.
constexpr std::string_view kSettingPrefixes[] = {"CUDA_",       "NCCL_",          "CUBLAS_", "CUDNN_", "PYTORCH_",
                                                 "TORCH_NCCL_", "TORCHINDUCTOR_", "SIMGPU_", "LEDGER_"};

template <std::size_t kSize>
void CopyText(char (&target)[kSize], std::string_view text) {
  const std::size_t bytes = text.size() < kSize - 1 ? text.size() : kSize - 1;
  memcpy(target, text.data(), bytes);
  target[bytes] = '\0';
}

std::size_t ReadFile(const char* path, char* buffer, std::size_t room) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::size_t filled = 0;
  while (filled < room) {
    const ssize_t got = read(fd, buffer + filled, room - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    filled += static_cast<std::size_t>(got);
  }
  close(fd);
  return filled;
}

// Arguments are separated by zero bytes there.
std::string_view CommandLine(char (&buffer)[kCommandBytes]) {
  std::size_t length = ReadFile("/proc/self/cmdline", buffer, sizeof(buffer));
  while (length > 0 && buffer[length - 1] == '\0') --length;
  for (std::size_t i = 0; i < length; ++i) {
    if (buffer[i] == '\0') buffer[i] = ' ';
  }
  return std::string_view(buffer, length);
}

void NoteEnvironment() {
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view entry(*variable);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    for (const std::string_view prefix : kSettingPrefixes) {
      if (!entry.starts_with(prefix)) continue;
      Line<256> key;
      key << "env." << std::string_view(entry.data(), equals);
      NoteSetting(key.view(), std::string_view(entry.data() + equals + 1, entry.size() - equals - 1));
      break;
    }
  }
}

void NoteOptions() {
  const Options& options = CurrentOptions();
  Line<64> bytes;
  bytes << options.max_bytes;
  NoteSetting("ledger.directory", options.directory);
  NoteSetting("ledger.max_bytes", bytes.view());
  NoteSetting("ledger.meminfo", options.ask_memory ? "1" : "0");
}

// 13020 → "13.2", as CUDA counts.
void NoteCudaVersion(std::string_view key, int version) {
  Line<32> text;
  text << static_cast<std::uint64_t>(version / 1000) << "." << static_cast<std::uint64_t>(version % 1000 / 10);
  NoteSetting(key, text.view());
}

// The runtime is not asked here: this may run inside of its own initialisation, under its locks (NoteRuntimeVersion).
void NoteDriverVersion() {
  int version = 0;
  const DriverCalls& driver = Driver();
  if (driver.cuDriverGetVersion != nullptr && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS) {
    NoteCudaVersion("version.driver", version);
  }
}

// 22809 → "2.28.9"; before 2.9 the factors were smaller.
void NoteNcclVersion() {
  const auto get = reinterpret_cast<int (*)(int*)>(SymbolOfLoaded("libnccl.so.2", "ncclGetVersion"));
  int version = 0;
  if (get == nullptr || get(&version) != 0 || version <= 0) return;
  const auto number = static_cast<std::uint64_t>(version);
  const std::uint64_t major_unit = number < 10'000 ? 1000 : 10'000;
  Line<32> text;
  text << number / major_unit << "." << number % major_unit / 100 << "." << number % 100;
  NoteSetting("version.nccl", text.view());
}

bool IsTorchLibrary(const Mapping& mapping, void* context) {
  constexpr std::string_view kLibrary = "/lib/libtorch_cpu.so";
  if (!mapping.path.ends_with(kLibrary)) return true;
  auto& version_file = *static_cast<Line<kMaxPathBytes>*>(context);
  version_file << std::string_view(mapping.path.data(), mapping.path.size() - kLibrary.size()) << "/version.py";
  return false;
}

// torch/version.py begins with "__version__ = '2.15.0+cu132'", after its imports.
void NoteTorchVersion() {
  Line<kMaxPathBytes> version_file;
  VisitMappings(IsTorchLibrary, &version_file);
  if (version_file.view().empty()) return;
  char buffer[1024];
  const std::string_view text(buffer, ReadFile(version_file.c_str(), buffer, sizeof(buffer)));
  constexpr std::string_view kKey = "__version__ = '";
  const std::size_t key = text.find(kKey);
  if (key == std::string_view::npos) return;
  const std::size_t begin = key + kKey.size();
  const std::size_t end = text.find('\'', begin);
  if (end != std::string_view::npos) NoteSetting("version.torch", std::string_view(text.data() + begin, end - begin));
}

}  // namespace

void NoteRuntimeVersion() {
  for (const char* const soname : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
    const auto get =
        reinterpret_cast<decltype(&cudaRuntimeGetVersion)>(SymbolOfLoaded(soname, "cudaRuntimeGetVersion"));
    int version = 0;
    if (get != nullptr && get(&version) == cudaSuccess) NoteCudaVersion("version.runtime", version);
  }
}

void DescribeProcess(record::FileHeader& header) {
  header.pid = static_cast<std::uint32_t>(getpid());
  header.parent_pid = static_cast<std::uint32_t>(getppid());
  header.local_rank = -1;
  if (FromEnvironment(kRankNames, header.rank)) header.flags |= record::kRankKnown;
  FromEnvironment(kLocalRankNames, header.local_rank);
  FromEnvironment(kWorldSizeNames, header.world_size);
  CopyText(header.recorder_version, LEDGER_VERSION);
  char host[sizeof(header.host)] = {};
  if (gethostname(host, sizeof(host) - 1) == 0) CopyText(header.host, host);
  char command[kCommandBytes];
  CopyText(header.program, CommandLine(command));
  for (const char* const name : kRunIdNames) {
    const char* const value = getenv(name);
    if (value == nullptr) continue;
    CopyText(header.run_id, value);
    break;
  }
}

void DescribeRun() {
  char command[kCommandBytes];
  NoteSetting("command", CommandLine(command));
  NoteOptions();
  NoteDriverVersion();
  NoteNcclVersion();
  NoteTorchVersion();
  NoteEnvironment();
}

}  // namespace ledger
