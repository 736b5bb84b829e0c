// A collective that moves data, by the protocol described in segment.h.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/simgpu/nccl/data_types.h"
#include "tools/simgpu/nccl/error.h"
#include "tools/simgpu/nccl/operation.h"

namespace simgpu::nccl {
namespace {

// Whose contributions a rank needs for its own result.
enum class Need { kNobody, kRoot, kEverybody };

Need NeedOf(const Operation& operation) {
  const bool is_root = operation.communicator->rank == operation.root;
  switch (operation.kind) {
    case OperationKind::kBroadcast:
    case OperationKind::kScatter:
      return Need::kRoot;
    case OperationKind::kGather:
    case OperationKind::kReduce:
      return is_root ? Need::kEverybody : Need::kNobody;
    default:
      return Need::kEverybody;
  }
}

bool Contributes(const Operation& operation) {
  const bool rooted_source = operation.kind == OperationKind::kBroadcast || operation.kind == OperationKind::kScatter;
  return !rooted_source || operation.communicator->rank == operation.root;
}

class CollectiveTask : public Task {
 public:
  explicit CollectiveTask(const Operation& operation)
      : Task(operation.communicator),
        operation_(operation),
        segment_(*operation.communicator->segment),
        ranks_(static_cast<std::uint32_t>(operation.communicator->ranks)) {}

  Progress Advance() override {
    if (phase_ == Phase::kNotStarted) Start();
    if (phase_ == Phase::kClaim) {
      // Some of this turn may even have finished already: those who needed nobody who is late.
      const std::uint32_t finished = Observe(segment_.slot(sequence_).finished);
      if (static_cast<std::int32_t>(finished - FinishedBefore()) < 0) return Progress::kBlocked;
      Publish();
      phase_ = Phase::kCollect;
    }
    if (phase_ == Phase::kCollect) {
      if (!Arrived()) return Progress::kBlocked;
      if (const ncclResult_t result = Compare(); result != ncclSuccess) {
        phase_ = Phase::kFailed;
        return Failed(result);
      }
      Absorb();
      segment_.contribution(sequence_, communicator_->rank).left.store(sequence_ + 1, std::memory_order_release);
      AddAndWake(segment_.slot(sequence_).finished, FinishedBefore() + ranks_);
      phase_ = Phase::kDone;
    }
    return phase_ == Phase::kFailed ? Progress::kFailed : Progress::kDone;
  }

  Blocker blocker() const override { return blocker_; }

  std::vector<int> LateRanks() const override {
    std::vector<int> late;
    if (phase_ == Phase::kDone) return late;
    if (phase_ == Phase::kCollect && NeedOf(operation_) == Need::kRoot) return {operation_.root};
    for (int rank = 0; rank < communicator_->ranks; ++rank) {
      const Contribution& theirs = segment_.contribution(sequence_, rank);
      const bool late_here = phase_ == Phase::kClaim
                                 ? theirs.left.load(std::memory_order_acquire) != sequence_ - kRingSlots + 1
                                 : theirs.published.load(std::memory_order_acquire) != sequence_ + 1;
      if (late_here) late.push_back(rank);
    }
    return late;
  }

  std::string Describe() const override {
    return std::string(operation_.function) + " #" + std::to_string(number_) + " of " + communicator_->Name();
  }

 private:
  enum class Phase { kNotStarted, kClaim, kCollect, kDone, kFailed };

  void Start() {
    sequence_ = communicator_->next_sequence++;
    number_ = communicator_->next_operation++;
    phase_ = Phase::kClaim;
  }

  std::uint32_t FinishedBefore() const { return sequence_ / kRingSlots * ranks_; }

  void Publish() {
    Contribution& mine = segment_.contribution(sequence_, communicator_->rank);
    mine.call = {.kind = static_cast<std::uint32_t>(operation_.kind),
                 .operation = static_cast<std::uint32_t>(BuiltInReduction()),
                 .root = static_cast<std::uint32_t>(operation_.root),
                 .datatype = static_cast<std::uint32_t>(operation_.type),
                 .bytes = operation_.bytes()};
    if (Contributes(operation_)) {
      char* data = segment_.data(sequence_, communicator_->rank);
      std::memcpy(data, operation_.send, operation_.message_bytes());
      ApplyScale(data);
    }
    SetAndWake(mine.published, sequence_ + 1);
    AddAndWake(segment_.slot(sequence_).arrived, FinishedBefore() + ranks_);
  }

  // A scaled sum is a sum once this rank's contribution has been scaled.
  ncclRedOp_t BuiltInReduction() const { return operation_.reduction < ncclNumOps ? operation_.reduction : ncclSum; }

  void ApplyScale(char* data) const {
    if (operation_.reduction < ncclNumOps) return;
    const ScaledSum& scaled =
        communicator_
            ->scaled_sums[static_cast<std::size_t>(operation_.reduction) - static_cast<std::size_t>(ncclNumOps)];
    Scale(data, operation_.message_bytes() / SizeOf(operation_.type), operation_.type,
          scaled.device_scalar != nullptr ? scaled.device_scalar : scaled.scalar);
  }

  bool Arrived() {
    switch (NeedOf(operation_)) {
      case Need::kNobody:
        return true;
      case Need::kRoot:
        return Observe(segment_.contribution(sequence_, operation_.root).published) == sequence_ + 1;
      case Need::kEverybody:
        return Observe(segment_.slot(sequence_).arrived) == FinishedBefore() + ranks_;
    }
    return false;
  }

  std::uint32_t Observe(const Word& word) {
    blocker_ = {&word, word.load(std::memory_order_acquire)};
    return blocker_.seen;
  }

  // Whether the ranks whose data is needed made the same call. Genuine NCCL would hang, or mix up the data.
  ncclResult_t Compare() const {
    const Need need = NeedOf(operation_);
    if (need == Need::kNobody) return ncclSuccess;
    const CallDescriptor& mine = segment_.contribution(sequence_, communicator_->rank).call;
    for (int rank = 0; rank < communicator_->ranks; ++rank) {
      if (need == Need::kRoot && rank != operation_.root) continue;
      const CallDescriptor& theirs = segment_.contribution(sequence_, rank).call;
      if (theirs.kind == mine.kind && theirs.operation == mine.operation && theirs.root == mine.root &&
          theirs.bytes == mine.bytes) {
        continue;
      }
      return Fail(ncclInvalidUsage,
                  "%s: rank %d made another call: rank %d has kind %u, reduction %u, root %u, %llu bytes; rank %d has "
                  "kind %u, reduction %u, root %u, %llu bytes",
                  Describe().c_str(), rank, communicator_->rank, mine.kind, mine.operation, mine.root,
                  static_cast<unsigned long long>(mine.bytes), rank, theirs.kind, theirs.operation, theirs.root,
                  static_cast<unsigned long long>(theirs.bytes));
    }
    return ncclSuccess;
  }

  void Absorb() const {
    const std::size_t bytes = operation_.bytes();
    const std::size_t mine = static_cast<std::size_t>(communicator_->rank);
    char* out = static_cast<char*>(operation_.receive);
    const auto data = [&](int rank) { return segment_.data(sequence_, rank); };
    switch (operation_.kind) {
      case OperationKind::kBroadcast:
        std::memcpy(out, data(operation_.root), bytes);
        break;
      case OperationKind::kScatter:
        std::memcpy(out, data(operation_.root) + mine * bytes, bytes);
        break;
      case OperationKind::kAllReduce:
        ReduceAll(0, out);
        break;
      case OperationKind::kReduceScatter:
        ReduceAll(mine * bytes, out);
        break;
      case OperationKind::kReduce:
        if (communicator_->rank == operation_.root) ReduceAll(0, out);
        break;
      case OperationKind::kGather:
        if (communicator_->rank != operation_.root) break;
        [[fallthrough]];
      case OperationKind::kAllGather:
        for (int rank = 0; rank < communicator_->ranks; ++rank) {
          std::memcpy(out + static_cast<std::size_t>(rank) * bytes, data(rank), bytes);
        }
        break;
      case OperationKind::kAlltoAll:
        for (int rank = 0; rank < communicator_->ranks; ++rank) {
          std::memcpy(out + static_cast<std::size_t>(rank) * bytes, data(rank) + mine * bytes, bytes);
        }
        break;
      case OperationKind::kSend:
      case OperationKind::kReceive:
        break;
    }
  }

  void ReduceAll(std::size_t offset, char* out) const {
    std::vector<const void*> inputs;
    for (int rank = 0; rank < communicator_->ranks; ++rank) inputs.push_back(segment_.data(sequence_, rank) + offset);
    Reduce(inputs, out, operation_.count, operation_.type, BuiltInReduction());
  }

  const Operation operation_;
  const Segment& segment_;
  const std::uint32_t ranks_;
  Phase phase_ = Phase::kNotStarted;
  Blocker blocker_;
  std::uint32_t sequence_ = 0;
  std::uint64_t number_ = 0;
};

}  // namespace

std::unique_ptr<Task> MakeCollectiveTask(const Operation& operation) {
  return std::make_unique<CollectiveTask>(operation);
}

}  // namespace simgpu::nccl
