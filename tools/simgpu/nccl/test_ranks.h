// Runs ranks as processes, for tests.
#ifndef TOOLS_SIMGPU_NCCL_TEST_RANKS_H_
#define TOOLS_SIMGPU_NCCL_TEST_RANKS_H_

#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace simgpu::nccl {

// In a rank's process: ends it with exit status 1 and a line on stderr. Catch2's assertions belong to the parent.
#define RANK_CHECK(condition)                                                                          \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      std::fprintf(stderr, "%s:%d: pid %d: not true: %s\n", __FILE__, __LINE__, getpid(), #condition); \
      _exit(1);                                                                                        \
    }                                                                                                  \
  } while (false)

constexpr int kKilled = 1000;  // + signal

// Forks `ranks` processes that each run `body(rank)` and exit with what it returns; the parent must not have used CUDA.
// Returns their exit statuses, in rank order.
inline std::vector<int> RunRanks(int ranks, const std::function<int(int)>& body) {
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(100);  // the last resort against a test that hangs
      const int status = body(rank);
      std::fflush(nullptr);
      _exit(status);
    }
    pids.push_back(pid);
  }
  std::vector<int> statuses;
  for (const pid_t pid : pids) {
    int status = 0;
    waitpid(pid, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : kKilled + WTERMSIG(status));
  }
  return statuses;
}

inline std::vector<int> AllZero(int ranks) { return std::vector<int>(static_cast<std::size_t>(ranks), 0); }

// Device memory, which on a simulated device the host can read and write in place.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count) {
    void* memory = nullptr;
    RANK_CHECK(ncclMemAlloc(&memory, count * sizeof(T)) == ncclSuccess);
    data_ = static_cast<T*>(memory);
  }
  ~Buffer() { ncclMemFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  T* get() const { return data_; }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
};

inline ncclUniqueId MakeId() {
  ncclUniqueId id;
  RANK_CHECK(ncclGetUniqueId(&id) == ncclSuccess);
  return id;
}

inline ncclComm_t Join(int ranks, const ncclUniqueId& id, int rank) {
  ncclComm_t comm = nullptr;
  RANK_CHECK(ncclCommInitRank(&comm, ranks, id, rank) == ncclSuccess);
  return comm;
}

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_TEST_RANKS_H_
