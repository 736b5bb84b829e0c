#include "tools/simgpu/nccl/task.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <map>
#include <optional>

#include "tools/simgpu/nccl/driver.h"
#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t kSleepOnOneNs = 20'000'000;  // with one thing to wait for, its word wakes us; this is for aborts
constexpr std::int64_t kSleepOnManyNs = 200'000;    // with several, there is no one word to sleep on
constexpr milliseconds kLivenessInterval{100};

Clock::duration Timeout() {
  static const std::uint64_t seconds = ProfileValue("option.timeout_s", 120);
  return std::chrono::seconds(seconds);
}

using Lane = std::deque<Task*>;

class TaskLoop {
 public:
  explicit TaskLoop(const std::vector<std::unique_ptr<Task>>& tasks) {
    for (const auto& task : tasks) lanes_[{&task->communicator(), task->lane()}].push_back(task.get());
  }

  ncclResult_t Run() {
    while (true) {
      const bool progress = AdvanceAll();
      if (lanes_.empty()) return result_;
      if (progress) {
        deadline_ = Clock::now() + Timeout();
        continue;
      }
      EndAborted();
      if (Clock::now() >= next_liveness_check_) {
        EndOrphans();
        next_liveness_check_ = Clock::now() + kLivenessInterval;
      }
      if (Clock::now() >= deadline_) EndAll();
      if (lanes_.empty()) return result_;
      Sleep();
    }
  }

 private:
  using Lanes = std::map<std::pair<Communicator*, int>, Lane>;

  // Returns whether any task has come to an end.
  bool AdvanceAll() {
    bool progress = false;
    for (auto entry = lanes_.begin(); entry != lanes_.end();) {
      Lane& lane = entry->second;
      while (!lane.empty()) {
        const Task::Progress step = lane.front()->Advance();
        if (step == Task::Progress::kBlocked) break;
        progress = true;
        if (step == Task::Progress::kFailed) {
          Fails(*lane.front(), lane.front()->result());
          lane.clear();
        } else {
          lane.pop_front();
        }
      }
      entry = lane.empty() ? lanes_.erase(entry) : std::next(entry);
    }
    return progress;
  }

  void Fails(Task& task, ncclResult_t result) {
    task.OnFailure(result);
    if (result_ == ncclSuccess) result_ = result;
  }

  template <class Condition>
  void EndIf(Condition condition) {
    std::erase_if(lanes_, [&](auto& entry) {
      Task& task = *entry.second.front();
      const std::optional<ncclResult_t> failure = condition(task);
      if (failure.has_value()) Fails(task, *failure);
      return failure.has_value();
    });
  }

  void EndAborted() {
    EndIf([](Task& task) -> std::optional<ncclResult_t> {
      if (task.communicator().aborted()) {
        return Fail(ncclSystemError, "aborted by ncclCommAbort: %s", task.Describe().c_str());
      }
      if (task.revocable() && task.communicator().revoked()) {
        return Fail(ncclSystemError, "ended by ncclCommRevoke: %s", task.Describe().c_str());
      }
      return std::nullopt;
    });
  }

  // Ends tasks that wait for a rank which will never come.
  void EndOrphans() {
    EndIf([](Task& task) -> std::optional<ncclResult_t> {
      if (const ncclResult_t failure = task.GiveUp(); failure != ncclSuccess) return failure;
      const Segment* segment = task.segment();
      if (segment == nullptr) return std::nullopt;
      for (const int rank : task.LateRanks()) {
        const char* fate = Fate(segment->rank(rank));
        if (fate == nullptr) continue;
        // It may have done its part and left since the task last looked.
        if (task.Advance() != Task::Progress::kBlocked || !std::ranges::count(task.LateRanks(), rank)) {
          return std::nullopt;  // the next round sees to it
        }
        return Fail(ncclRemoteError, "rank %d (pid %d) of %s %s; waited in %s", rank, segment->rank(rank).process.pid,
                    task.communicator().Name().c_str(), fate, task.Describe().c_str());
      }
      return std::nullopt;
    });
  }

  static const char* Fate(const RankState& rank) {
    switch (rank.phase.load(std::memory_order_acquire)) {
      case RankPhase::kAbsent:
        return nullptr;  // not there yet: nobody to look for
      case RankPhase::kJoined:
        return IsAlive(rank.process) ? nullptr : "is gone";
      case RankPhase::kFailed:
        return "has given up on it after an error of its own";
      case RankPhase::kAborted:
        return "has aborted it";
      case RankPhase::kLeft:
        return "has destroyed it";
    }
    return nullptr;
  }

  void EndAll() {
    EndIf([](Task& task) -> std::optional<ncclResult_t> {
      std::string late;
      for (const int rank : task.LateRanks()) {
        const Segment* segment = task.segment();
        const std::int32_t pid = segment == nullptr ? 0 : segment->rank(rank).process.pid;
        late += (late.empty() ? " " : ", ") + std::to_string(rank);
        late += pid == 0 ? std::string(" (not there)") : " (pid " + std::to_string(pid) + ")";
      }
      return Fail(ncclSystemError, "gave up after %lld s (SIMGPU_TIMEOUT_S): rank %d waited in %s for rank%s",
                  static_cast<long long>(std::chrono::duration_cast<std::chrono::seconds>(Timeout()).count()),
                  task.communicator().rank, task.Describe().c_str(), late.c_str());
    });
  }

  void Sleep() const {
    const Task::Blocker blocker = lanes_.begin()->second.front()->blocker();
    if (blocker.word == nullptr) {
      static const Word nothing{0};
      WaitForChange(nothing, 0, kSleepOnManyNs);
    } else {
      WaitForChange(*blocker.word, blocker.seen, lanes_.size() == 1 ? kSleepOnOneNs : kSleepOnManyNs);
    }
  }

  Lanes lanes_;
  ncclResult_t result_ = ncclSuccess;
  Clock::time_point deadline_ = Clock::now() + Timeout();
  Clock::time_point next_liveness_check_ = Clock::now() + kLivenessInterval;
};

}  // namespace

ncclResult_t RunTasks(const std::vector<std::unique_ptr<Task>>& tasks) {
  // Two threads that run groups over the same communicators lock them in the same order.
  std::vector<Communicator*> communicators;
  for (const auto& task : tasks) communicators.push_back(&task->communicator());
  std::ranges::sort(communicators);
  communicators.erase(std::ranges::unique(communicators).begin(), communicators.end());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (Communicator* communicator : communicators) locks.emplace_back(communicator->order_mutex);
  return TaskLoop(tasks).Run();
}

}  // namespace simgpu::nccl
