// A line on stderr when work takes longer than a second: redrawn on a terminal, printed once elsewhere.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace gpuledger {

class Progress {
 public:
  // Until destroyed, watches done() grow to `total`.
  Progress(std::string what, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  std::atomic<std::uint64_t>& done() { return done_; }

 private:
  void Watch();

  const std::string what_;
  const std::uint64_t total_;
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool finished_ = false;  // guarded by mutex_
  std::thread watcher_;    // last: it uses all of the above
};

}  // namespace gpuledger
