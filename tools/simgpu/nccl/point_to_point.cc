// Sends and receives that move data: a mailbox per ordered pair of ranks, in the segment.
#include <cstring>

#include "tools/simgpu/nccl/error.h"
#include "tools/simgpu/nccl/operation.h"

namespace simgpu::nccl {
namespace {

class PointToPointTask : public Task {
 public:
  explicit PointToPointTask(const Operation& operation)
      : Task(operation.communicator),
        operation_(operation),
        sends_(operation.kind == OperationKind::kSend),
        sender_(sends_ ? operation.communicator->rank : operation.root),
        receiver_(sends_ ? operation.root : operation.communicator->rank),
        box_(operation.communicator->segment->mailbox(sender_, receiver_)) {}

  // Sends to a peer keep their order, as do receives from it; nothing else does.
  int lane() const override { return 1 + 2 * operation_.root + (sends_ ? 0 : 1); }

  Progress Advance() override {
    if (finished_) return result() == ncclSuccess ? Progress::kDone : Progress::kFailed;
    if (number_ == 0) number_ = ++communicator_->next_operation;
    const std::uint32_t sent = box_.sent.load(std::memory_order_acquire);
    const std::uint32_t received = box_.received.load(std::memory_order_acquire);
    if (sends_ ? sent - received == kMailSlots : sent == received) {
      blocker_ = sends_ ? Blocker{&box_.received, received} : Blocker{&box_.sent, sent};
      return Progress::kBlocked;
    }
    finished_ = true;
    if (sends_) {
      box_.bytes[sent % kMailSlots] = operation_.bytes();
      std::memcpy(communicator_->segment->mail(sender_, receiver_, sent), operation_.send, operation_.bytes());
      SetAndWake(box_.sent, sent + 1);
      return Progress::kDone;
    }
    const std::uint64_t arrived = box_.bytes[received % kMailSlots];
    if (arrived != operation_.bytes()) {
      return Failed(Fail(ncclInvalidUsage, "%s: rank %d sent %llu bytes, rank %d expects %llu", Describe().c_str(),
                         sender_, static_cast<unsigned long long>(arrived), receiver_,
                         static_cast<unsigned long long>(operation_.bytes())));
    }
    std::memcpy(operation_.receive, communicator_->segment->mail(sender_, receiver_, received), operation_.bytes());
    SetAndWake(box_.received, received + 1);
    return Progress::kDone;
  }

  Blocker blocker() const override { return blocker_; }

  std::vector<int> LateRanks() const override { return finished_ ? std::vector<int>() : std::vector{operation_.root}; }

  std::string Describe() const override {
    return std::string(operation_.function) + " #" + std::to_string(number_) + (sends_ ? " to rank " : " from rank ") +
           std::to_string(operation_.root) + " of " + communicator_->Name();
  }

 private:
  const Operation operation_;
  const bool sends_;
  const int sender_;
  const int receiver_;
  Mailbox& box_;
  Blocker blocker_;
  std::uint64_t number_ = 0;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<Task> MakePointToPointTask(const Operation& operation) {
  return std::make_unique<PointToPointTask>(operation);
}

}  // namespace simgpu::nccl
