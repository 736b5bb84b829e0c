#include "tools/simgpu/nccl/formation.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "tools/simgpu/nccl/driver.h"
#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

constexpr unsigned kConfigMagic = 0xcafebeef;

// Joins one communicator and gives it its memory. Used alone, and as the last step of a split.
class Joining {
 public:
  Joining(std::shared_ptr<Communicator> communicator, const Invitation& invitation)
      : communicator_(std::move(communicator)), invitation_(invitation) {}

  Task::Progress Advance(ncclResult_t* result) {
    Communicator& communicator = *communicator_;
    if (communicator.segment == nullptr) {
      *result = Segment::Join(invitation_, communicator.ranks, communicator.rank, &communicator.segment);
      if (*result != ncclSuccess) return Task::Progress::kFailed;
    }
    if (!complete_) {
      const Word& joined = communicator.segment->joined();
      blocker_ = {&joined, joined.load(std::memory_order_acquire)};
      if (blocker_.seen != static_cast<std::uint32_t>(communicator.ranks)) return Task::Progress::kBlocked;
      complete_ = true;
      WithdrawInvitation(invitation_.nonce);
      if (communicator.connections == nullptr) {
        communicator.connections = std::make_shared<Connections>(communicator.context, communicator.device);
        communicator.top_ranks.resize(static_cast<std::size_t>(communicator.ranks));
        std::iota(communicator.top_ranks.begin(), communicator.top_ranks.end(), 0);
      }
      *result = CoreMemory::Allocate(communicator.context, communicator.device, &communicator.core);
      if (*result != ncclSuccess) return Task::Progress::kFailed;
      communicator.SetState(ncclSuccess);
    }
    return Task::Progress::kDone;
  }

  Task::Blocker blocker() const { return blocker_; }

  std::vector<int> LateRanks() const {
    std::vector<int> late;
    if (communicator_->segment == nullptr || complete_) return late;
    for (int rank = 0; rank < communicator_->ranks; ++rank) {
      if (communicator_->segment->rank(rank).phase.load() == RankPhase::kAbsent) late.push_back(rank);
    }
    return late;
  }

  // Ranks that haven't come can't be looked for; but without the maker of the id, they can't come any more.
  bool Hopeless() const { return !complete_ && !LateRanks().empty() && !IsAlive(invitation_.maker); }

  Communicator& communicator() const { return *communicator_; }
  const Invitation& invitation() const { return invitation_; }

 private:
  const std::shared_ptr<Communicator> communicator_;
  const Invitation invitation_;
  Task::Blocker blocker_;
  bool complete_ = false;
};

class JoinTask : public Task {
 public:
  JoinTask(const char* function, std::shared_ptr<Communicator> communicator, const Invitation& invitation)
      : Task(communicator), function_(function), joining_(std::move(communicator), invitation) {}

  Progress Advance() override {
    if (result() != ncclSuccess) return Progress::kFailed;
    ncclResult_t result = ncclSuccess;
    const Progress progress = joining_.Advance(&result);
    return result == ncclSuccess ? progress : Failed(result);
  }
  ncclResult_t GiveUp() override {
    if (!joining_.Hopeless()) return ncclSuccess;
    return Fail(ncclRemoteError, "the maker of the unique id (pid %d) is gone before all ranks joined; waited in %s",
                joining_.invitation().maker.pid, Describe().c_str());
  }
  Blocker blocker() const override { return joining_.blocker(); }
  std::vector<int> LateRanks() const override { return joining_.LateRanks(); }
  std::string Describe() const override { return std::string(function_) + " of " + communicator_->Name(); }

 private:
  const char* function_;
  Joining joining_;
};

// Makes a communicator out of a parent: vote (unless all know who takes part), get the leader's invitation, join.
class SplitTask : public Task {
 public:
  struct Request {
    const char* function;
    int color = 0;
    int key = 0;
    bool votes = true;
    std::vector<int> members;  // ranks of the parent in their new order; with votes: found out
    bool share = false;
    CommunicatorOptions options;
    ncclComm_t* handle = nullptr;
  };

  SplitTask(std::shared_ptr<Communicator> parent, Request request)
      : Task(std::move(parent)), request_(std::move(request)) {}

  Progress Advance() override {
    if (result() != ncclSuccess) return Progress::kFailed;
    ncclResult_t result = ncclSuccess;
    const Progress progress = AdvanceSteps(&result);
    if (progress == Progress::kFailed) return Failed(result);
    return progress;
  }

  Blocker blocker() const override { return step_ == Step::kJoin ? joining_->blocker() : Blocker(); }

  std::vector<int> LateRanks() const override {
    std::vector<int> late;
    if (step_ == Step::kVote) {
      for (int rank = 0; rank < communicator_->ranks; ++rank) {
        if (!HasVoted(rank)) late.push_back(rank);
      }
    } else if (step_ == Step::kOffer) {
      late.push_back(request_.members.front());
    } else if (step_ == Step::kJoin) {
      // Told as ranks of the parent: those have processes to look for.
      for (const int rank : joining_->LateRanks()) late.push_back(request_.members[static_cast<std::size_t>(rank)]);
    }
    return late;
  }

  std::string Describe() const override {
    return std::string(request_.function) + " #" + std::to_string(number_) + " of " + communicator_->Name();
  }

  // The parent stays as it is. The child, if there is one already, was never handed out.
  void OnFailure(ncclResult_t failure) override {
    if (joining_.has_value()) joining_->communicator().Break(failure);
  }
  bool revocable() const override { return false; }
  int lane() const override { return -1; }

 private:
  enum class Step { kStart, kVote, kOffer, kJoin, kDone };

  SplitState& Place(int rank) const { return communicator_->segment->rank(rank).splits[number_ % kSplits]; }
  bool HasVoted(int rank) const { return Place(rank).voted.load(std::memory_order_acquire) == number_; }

  Progress AdvanceSteps(ncclResult_t* result) {
    if (step_ == Step::kStart) {
      number_ = communicator_->next_split++;
      if (request_.votes) Vote();
      step_ = request_.votes ? Step::kVote : Step::kOffer;
    }
    if (step_ == Step::kVote) {
      for (int rank = 0; rank < communicator_->ranks; ++rank) {
        if (!HasVoted(rank)) return Progress::kBlocked;
      }
      if (request_.color == NCCL_SPLIT_NOCOLOR) {
        *request_.handle = nullptr;
        step_ = Step::kDone;
      } else {
        FindMembers();
        step_ = Step::kOffer;
      }
    }
    if (step_ == Step::kOffer) {
      const int leader = request_.members.front();
      SplitState& place = Place(leader);
      if (leader == communicator_->rank && place.offered.load() != number_) {
        *result = MakeInvitation(&place.invitation);
        if (*result != ncclSuccess) return Progress::kFailed;
        SetAndWake(place.offered, number_);
      }
      if (place.offered.load(std::memory_order_acquire) != number_) return Progress::kBlocked;
      joining_.emplace(MakeChild(place.invitation), place.invitation);
      step_ = Step::kJoin;
    }
    if (step_ == Step::kJoin) {
      const Progress progress = joining_->Advance(result);
      if (progress != Progress::kDone) return progress;
      *request_.handle = Register(child_);
      step_ = Step::kDone;
    }
    return Progress::kDone;
  }

  void Vote() {
    SplitState& mine = Place(communicator_->rank);
    mine.color = request_.color;
    mine.key = request_.key;
    SetAndWake(mine.voted, number_);
  }

  void FindMembers() {
    for (int rank = 0; rank < communicator_->ranks; ++rank) {
      if (Place(rank).color == request_.color) request_.members.push_back(rank);
    }
    std::ranges::stable_sort(request_.members, {}, [this](int rank) { return Place(rank).key; });
  }

  std::shared_ptr<Communicator> MakeChild(const Invitation& invitation) {
    const auto& members = request_.members;
    const auto rank = std::ranges::find(members, communicator_->rank) - members.begin();
    child_ = std::make_shared<Communicator>(static_cast<int>(members.size()), static_cast<int>(rank),
                                            communicator_->context, communicator_->device, request_.options);
    child_->hash = invitation.CommunicatorHash();
    if (request_.share) {
      child_->connections = communicator_->connections;
      for (const int member : members) {
        child_->top_ranks.push_back(communicator_->top_ranks[static_cast<std::size_t>(member)]);
      }
    }
    return child_;
  }

  Request request_;
  Step step_ = Step::kStart;
  std::uint32_t number_ = 0;
  std::shared_ptr<Communicator> child_;
  std::optional<Joining> joining_;
};

}  // namespace

ncclResult_t ReadOptions(const char* function, const ncclConfig_t* config, CommunicatorOptions* options) {
  if (config == nullptr) return ncclSuccess;
  if (config->magic != kConfigMagic) {
    return Fail(ncclInvalidArgument, "%s : config argument is not initialized by NCCL_CONFIG_INITIALIZER", function);
  }
  const auto has = [config](std::size_t offset) { return config->size >= offset + sizeof(int); };
  const auto read = [&](std::size_t offset, int value, bool* option) {
    if (!has(offset) || value == NCCL_CONFIG_UNDEF_INT) return ncclSuccess;
    if (value != 0 && value != 1) {
      return Fail(ncclInvalidArgument, "%s : config: a switch has the value %d, expected 0 or 1", function, value);
    }
    *option = value == 1;
    return ncclSuccess;
  };
  ncclResult_t result = read(offsetof(ncclConfig_t, blocking), config->blocking, &options->blocking);
  if (result == ncclSuccess) {
    result = read(offsetof(ncclConfig_t, splitShare), config->splitShare, &options->split_share);
  }
  if (result == ncclSuccess && has(offsetof(ncclConfig_t, shrinkShare))) {
    result = read(offsetof(ncclConfig_t, shrinkShare), config->shrinkShare, &options->shrink_share);
  }
  return result;
}

ncclResult_t PrepareJoin(const char* function, int ranks, int rank, const ncclUniqueId& id,
                         const CommunicatorOptions& options, ncclComm_t* handle, Formation* formation) {
  if (handle == nullptr) return Fail(ncclInvalidArgument, "%s : comm argument is NULL", function);
  *handle = nullptr;
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return Fail(ncclInvalidArgument, "%s : invalid rank requested : %d/%d", function, rank, ranks);
  }
  if (ranks > kMaxRanks) {
    return Fail(ncclInvalidArgument, "%s : %d ranks; the simulated NCCL has room for %d", function, ranks, kMaxRanks);
  }
  Invitation invitation;
  if (const ncclResult_t result = ParseInvitation(id, &invitation); result != ncclSuccess) return result;
  CUcontext context = nullptr;
  CUdevice device = 0;
  if (const ncclResult_t result = CurrentDevice(function, &context, &device); result != ncclSuccess) return result;
  auto communicator = std::make_shared<Communicator>(ranks, rank, context, device, options);
  communicator->hash = invitation.CommunicatorHash();
  *handle = Register(communicator);
  *formation = {.task = std::make_unique<JoinTask>(function, std::move(communicator), invitation),
                .handle = handle,
                .blocking = options.blocking};
  return ncclSuccess;
}

ncclResult_t PrepareSplit(std::shared_ptr<Communicator> parent, int color, int key, const CommunicatorOptions& options,
                          ncclComm_t* handle, Formation* formation) {
  if (handle == nullptr) return Fail(ncclInvalidArgument, "ncclCommSplit : newcomm argument is NULL");
  *handle = nullptr;
  if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
    return Fail(ncclInvalidArgument, "ncclCommSplit : invalid color %d: expected 0 or more, or NCCL_SPLIT_NOCOLOR",
                color);
  }
  const bool blocking = parent->options.blocking;
  SplitTask::Request request{.function = "ncclCommSplit",
                             .color = color,
                             .key = key,
                             .members = {},
                             .share = options.split_share && !parent->revoked(),
                             .options = options,
                             .handle = handle};
  *formation = {.task = std::make_unique<SplitTask>(std::move(parent), std::move(request)),
                .handle = handle,
                .blocking = blocking};
  return ncclSuccess;
}

ncclResult_t PrepareShrink(std::shared_ptr<Communicator> parent, std::vector<int> excluded,
                           const CommunicatorOptions& options, ncclComm_t* handle, Formation* formation) {
  if (handle == nullptr) return Fail(ncclInvalidArgument, "ncclCommShrink : newcomm argument is NULL");
  *handle = nullptr;
  std::vector<int> members;
  for (int rank = 0; rank < parent->ranks; ++rank) {
    if (std::ranges::count(excluded, rank) == 0) members.push_back(rank);
  }
  if (excluded.empty() || members.size() + excluded.size() != static_cast<std::size_t>(parent->ranks) ||
      std::ranges::count(members, parent->rank) == 0) {
    return Fail(ncclInvalidArgument,
                "ncclCommShrink : invalid list of %zu ranks to exclude: expected distinct ranks of the %d, without the "
                "caller's (%d)",
                excluded.size(), parent->ranks, parent->rank);
  }
  const bool blocking = parent->options.blocking;
  SplitTask::Request request{.function = "ncclCommShrink",
                             .votes = false,
                             .members = std::move(members),
                             .share = options.shrink_share && !parent->revoked(),
                             .options = options,
                             .handle = handle};
  *formation = {.task = std::make_unique<SplitTask>(std::move(parent), std::move(request)),
                .handle = handle,
                .blocking = blocking};
  return ncclSuccess;
}

ncclResult_t Form(std::vector<Formation> formations) {
  if (formations.empty()) return ncclSuccess;
  std::vector<std::unique_ptr<Task>> tasks;
  bool blocking = false;
  for (Formation& formation : formations) {
    blocking |= formation.blocking;
    tasks.push_back(std::move(formation.task));
  }
  if (blocking) {
    const ncclResult_t result = RunTasks(tasks);
    // What wasn't made isn't handed out either. A group fails as a whole.
    if (result != ncclSuccess) {
      for (const Formation& formation : formations) {
        if (*formation.handle != nullptr) Unregister(std::exchange(*formation.handle, nullptr));
      }
    }
    return result;
  }

  // The program asks for the state of what it called with: the parent is in progress until its child is made. A task
  // that fails sets the state itself.
  for (const auto& task : tasks) task->communicator().SetState(ncclInProgress);
  std::thread([background = std::move(tasks)] {
    RunTasks(background);
    for (const auto& task : background) {
      Communicator& communicator = task->communicator();
      if (communicator.state() == ncclInProgress) {
        communicator.SetState(task->result() == ncclSuccess ? ncclSuccess : task->result());
      }
    }
  }).detach();
  return ncclInProgress;
}

}  // namespace simgpu::nccl
