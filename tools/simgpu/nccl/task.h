// What has to wait for other ranks, as state machines that never wait themselves, and the loop that drives them.
//
// A group of NCCL calls may hold operations on several communicators, sends beside receives, and several ranks of one
// communicator that this process drives alone; whichever waits first must not keep the others from going on. So each
// is a task, tasks that have to keep their order share a lane, and all lanes advance in turn.
//
// Where this differs from a GPU: operations that carry data complete on the host, inside the call, instead of later on
// the stream. Communicators that a program uses in different orders on different ranks, from one thread and outside a
// group, would therefore wait for each other where streams would not. Frameworks enqueue in one order on all ranks;
// large operations never wait; and every wait ends after SIMGPU_TIMEOUT_S, or as soon as a rank that is waited for is
// seen to be gone, with an error that says who waited for whom.
#ifndef TOOLS_SIMGPU_NCCL_TASK_H_
#define TOOLS_SIMGPU_NCCL_TASK_H_

#include <nccl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/simgpu/nccl/communicator.h"
#include "tools/simgpu/nccl/segment.h"

namespace simgpu::nccl {

class Task {
 public:
  enum class Progress { kDone, kBlocked, kFailed };

  struct Blocker {
    const Word* word = nullptr;  // changes when something happened; null: nothing to sleep on
    std::uint32_t seen = 0;      // its value when Advance() found that it can't go on
  };

  explicit Task(std::shared_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  virtual ~Task() = default;

  // Goes as far as it can. A failure has been reported by Fail() and is in result(). After the end of the task, a
  // further call gives the same answer again.
  virtual Progress Advance() = 0;
  // After Advance() returned kBlocked: what to sleep on, and which ranks of segment() are late.
  virtual Blocker blocker() const = 0;
  virtual std::vector<int> LateRanks() const = 0;
  // Asked now and then while blocked: another reason, already reported, why it can't go on; else success.
  virtual ncclResult_t GiveUp() { return ncclSuccess; }
  virtual const Segment* segment() const { return communicator_->segment.get(); }
  // Tasks of one communicator with the same lane run one after the other.
  virtual int lane() const { return 0; }
  // "ncclAllReduce #12 of communicator 0123456789abcdef"
  virtual std::string Describe() const = 0;
  // What a failure takes down with it.
  virtual void OnFailure(ncclResult_t result) { communicator_->Break(result); }
  // Whether ncclCommRevoke ends it.
  virtual bool revocable() const { return true; }

  Communicator& communicator() const { return *communicator_; }
  ncclResult_t result() const { return result_; }

 protected:
  Progress Failed(ncclResult_t result) {
    result_ = result;
    return Progress::kFailed;
  }

  const std::shared_ptr<Communicator> communicator_;

 private:
  ncclResult_t result_ = ncclSuccess;
};

// Runs all tasks to their end, in the calling thread. Returns the first failure; a failed task breaks its communicator
// and ends the tasks behind it in its lane, not those of other communicators.
ncclResult_t RunTasks(const std::vector<std::unique_ptr<Task>>& tasks);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_TASK_H_
