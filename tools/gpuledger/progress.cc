#include "tools/gpuledger/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <utility>

namespace gpuledger {
namespace {

constexpr std::chrono::milliseconds kSilence{1000};
constexpr std::chrono::milliseconds kRedraw{200};

}  // namespace

Progress::Progress(std::string what, std::uint64_t total)
    : what_(std::move(what)), total_(std::max<std::uint64_t>(total, 1)), watcher_([this] { Watch(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    finished_ = true;
  }
  wake_.notify_one();
  watcher_.join();
}

void Progress::Watch() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::unique_lock<std::mutex> lock(mutex_);
  if (wake_.wait_for(lock, kSilence, [this] { return finished_; })) return;
  if (!terminal) std::fprintf(stderr, "gpuledger: %s ...\n", what_.c_str());
  bool finished = false;
  while (!finished) {
    if (terminal) {
      const std::uint64_t done = std::min(done_.load(std::memory_order_relaxed), total_);
      std::fprintf(stderr, "\rgpuledger: %s: %3.0f %%", what_.c_str(),
                   100.0 * static_cast<double>(done) / static_cast<double>(total_));
      std::fflush(stderr);
    }
    finished = wake_.wait_for(lock, kRedraw, [this] { return finished_; });
  }
  if (terminal) std::fprintf(stderr, "\r\033[K");  // the line was for the wait alone
}

}  // namespace gpuledger
