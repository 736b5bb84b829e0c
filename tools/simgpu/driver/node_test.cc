// Several processes on one node. Each test forks before anything of CUDA is initialised, so this is a program of its
// own.
#include <cuda.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tools/simgpu/driver/export_table.h"

namespace simgpu {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A process that does what it is told, one letter at a time, and answers with a number.
class Peer {
 public:
  Peer() {
    REQUIRE(pipe(orders_.data()) == 0);
    REQUIRE(pipe(answers_.data()) == 0);
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ != 0) return;
    close(orders_[1]);
    close(answers_[0]);
    char order = 0;
    while (read(orders_[0], &order, 1) == 1 && order != 'q') {
      const std::uint64_t answer = Obey(order);
      if (write(answers_[1], &answer, sizeof answer) != sizeof answer) break;
    }
    std::exit(0);  // with exit handlers
  }
  ~Peer() { End(); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::uint64_t Order(char order) {
    std::uint64_t answer = 0;
    REQUIRE(write(orders_[1], &order, 1) == 1);
    REQUIRE(read(answers_[0], &answer, sizeof answer) == sizeof answer);
    return answer;
  }
  void Kill() { kill(pid_, SIGKILL); }
  void End() {
    if (pid_ <= 0) return;
    // The end of the pipe would not do: peers that were forked later hold it open as well.
    std::signal(SIGPIPE, SIG_IGN);  // the peer may have been killed
    const char quit = 'q';
    const bool told = write(orders_[1], &quit, 1) == 1;
    static_cast<void>(told);
    for (const int fd : {orders_[0], orders_[1], answers_[0], answers_[1]}) close(fd);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  static std::uint64_t Obey(char order) {
    static CUdeviceptr address = 0;
    CUcontext context = nullptr;
    std::size_t free = 0, total = 0;
    switch (order) {
      case 'i':  // initialise
        if (const CUresult result = cuInit(0); result != CUDA_SUCCESS) return result;
        if (const CUresult result = cuDevicePrimaryCtxRetain(&context, 0); result != CUDA_SUCCESS) return result;
        return cuCtxSetCurrent(context);
      case 'a':  // allocate
        return cuMemAlloc(&address, 256 * kMiB);
      case 'b':  // allocate too much for two
        return cuMemAlloc(&address, 600 * kMiB);
      case 'f':  // free
        return cuMemFree(address);
      case 'u':  // used bytes of the device
        cuMemGetInfo(&free, &total);
        return total - free;
      case 'p': {  // processes on the device
        const void* table = nullptr;
        NodeProcess processes[8];
        std::size_t count = 8;
        cuGetExportTable(&table, &kExportTableId);
        static_cast<const ExportTable*>(table)->node_processes(0, processes, &count);
        return count;
      }
      default:
        return 999;
    }
  }

  std::array<int, 2> orders_{};
  std::array<int, 2> answers_{};
  pid_t pid_ = 0;
};

void UseNode(const char* name) {
  setenv("SIMGPU_PROFILE", "tiny", 1);
  if (name == nullptr) {
    unsetenv("SIMGPU_NODE");
  } else {
    setenv("SIMGPU_NODE", name, 1);
  }
}

std::string NodeName(const char* test) { return std::string("test_") + test + "_" + std::to_string(getpid()); }
bool FileExists(const std::string& node) { return access(("/dev/shm/simgpu." + node).c_str(), F_OK) == 0; }

constexpr std::uint64_t kContext = 64 * kMiB;

TEST_CASE("Processes of a node see each other's use, and share its limit") {
  const std::string name = NodeName("share");
  UseNode(name.c_str());
  Peer first, second;
  REQUIRE(first.Order('i') == CUDA_SUCCESS);
  REQUIRE(second.Order('i') == CUDA_SUCCESS);
  REQUIRE(first.Order('u') == 2 * kContext);
  REQUIRE(second.Order('a') == CUDA_SUCCESS);
  REQUIRE(first.Order('u') == 2 * kContext + 256 * kMiB);
  REQUIRE(first.Order('p') == 2);
  REQUIRE(first.Order('b') == CUDA_SUCCESS);
  REQUIRE(second.Order('a') == CUDA_ERROR_OUT_OF_MEMORY);
  REQUIRE(first.Order('f') == CUDA_SUCCESS);
  REQUIRE(second.Order('a') == CUDA_SUCCESS);
  REQUIRE(FileExists(name));
  first.End();
  REQUIRE(FileExists(name));
  second.End();
  REQUIRE(!FileExists(name));  // the last one has removed it
}

TEST_CASE("The use of a process that was killed is gone") {
  const std::string name = NodeName("kill");
  UseNode(name.c_str());
  Peer first, second;
  REQUIRE(first.Order('i') == CUDA_SUCCESS);
  REQUIRE(second.Order('i') == CUDA_SUCCESS);
  REQUIRE(second.Order('b') == CUDA_SUCCESS);
  REQUIRE(first.Order('b') == CUDA_ERROR_OUT_OF_MEMORY);
  second.Kill();
  second.End();
  REQUIRE(first.Order('u') == kContext);
  REQUIRE(first.Order('p') == 1);
  REQUIRE(first.Order('b') == CUDA_SUCCESS);
  first.End();
  REQUIRE(!FileExists(name));
}

TEST_CASE("Without a node, a process is alone") {
  UseNode(nullptr);
  Peer first, second;
  REQUIRE(first.Order('i') == CUDA_SUCCESS);
  REQUIRE(second.Order('i') == CUDA_SUCCESS);
  REQUIRE(first.Order('b') == CUDA_SUCCESS);
  REQUIRE(second.Order('b') == CUDA_SUCCESS);
  REQUIRE(first.Order('u') == kContext + 600 * kMiB);
}

int InChild(int (*function)()) {
  const pid_t pid = fork();
  if (pid == 0) _exit(function());
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("A child of a process that uses CUDA cannot use it") {
  UseNode(nullptr);
  const int grandchild = InChild([] {
    if (cuInit(0) != CUDA_SUCCESS) return 1;
    return InChild([] {
      int count = 0;
      if (cuDeviceGetCount(&count) != CUDA_ERROR_NOT_INITIALIZED) return 2;
      return cuInit(0) == CUDA_ERROR_NOT_INITIALIZED ? 42 : 3;
    });
  });
  REQUIRE(grandchild == 42);
}

TEST_CASE("Visible devices are those that CUDA_VISIBLE_DEVICES names") {
  UseNode(nullptr);
  const auto count_with = [](const char* visible) {
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
    const int count = InChild([] {
      int found = 0;
      const CUresult result = cuInit(0);
      if (result == CUDA_ERROR_NO_DEVICE) return 0;
      return result == CUDA_SUCCESS && cuDeviceGetCount(&found) == CUDA_SUCCESS ? found : 99;
    });
    unsetenv("CUDA_VISIBLE_DEVICES");
    return count;
  };
  REQUIRE(count_with("0") == 1);
  REQUIRE(count_with("3,1") == 2);
  REQUIRE(count_with("") == 0);
  REQUIRE(count_with("-1") == 0);
  REQUIRE(count_with("2,-1,3") == 1);
  REQUIRE(count_with("1,1") == 0);
  REQUIRE(count_with("7,8") == 1);
  REQUIRE(count_with("GPU-53000004") == 1);
}

TEST_CASE("A missing profile is an error that says what to do") {
  setenv("SIMGPU_PROFILE", "no-such-gpu", 1);
  REQUIRE(InChild([] { return static_cast<int>(cuInit(0)) == CUDA_ERROR_SYSTEM_NOT_READY ? 42 : 1; }) == 42);
  unsetenv("SIMGPU_PROFILE");
}

}  // namespace
}  // namespace simgpu
