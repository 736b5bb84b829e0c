#include "tools/simgpu/nccl/communicator.h"

#include <cstdio>
#include <unordered_map>
#include <utility>

#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

struct Table {
  std::mutex mutex;
  std::unordered_map<ncclComm_t, std::shared_ptr<Communicator>> entries;
};

// Never destroyed: programs destroy communicators from exit handlers, and watchdog threads outlive main().
Table& GetTable() {
  static auto* const table = new Table;
  return *table;
}

}  // namespace

Communicator::Communicator(int ranks_value, int rank_value, CUcontext context_value, CUdevice device_value,
                           CommunicatorOptions options_value)
    : ranks(ranks_value), rank(rank_value), context(context_value), device(device_value), options(options_value) {}

Communicator::~Communicator() {
  if (segment == nullptr) return;
  RankPhase joined = RankPhase::kJoined;
  segment->rank(rank).phase.compare_exchange_strong(joined, RankPhase::kLeft);
}

void Communicator::SetState(ncclResult_t state) {
  state_.store(state, std::memory_order_release);
  state_.notify_all();
}

void Communicator::AwaitMade() const { state_.wait(ncclInProgress); }

void Communicator::Break(ncclResult_t result) {
  ncclResult_t current = state();
  while ((current == ncclSuccess || current == ncclInProgress) && !state_.compare_exchange_weak(current, result)) {
  }
  state_.notify_all();
  if (segment == nullptr) return;
  RankPhase joined = RankPhase::kJoined;
  segment->rank(rank).phase.compare_exchange_strong(joined, RankPhase::kFailed);
}

void Communicator::Abort() {
  aborted_.store(true, std::memory_order_release);
  // While the communicator is being made, another thread may be setting `segment`; there is nobody to tell yet.
  if (state() != ncclInProgress && segment != nullptr) segment->rank(rank).phase.store(RankPhase::kAborted);
}

std::uint64_t Communicator::device_bytes() const {
  return (core ? core->device_bytes() : 0) + (connections ? connections->bytes() : 0);
}

std::string Communicator::Name() const {
  char text[48];
  std::snprintf(text, sizeof text, "communicator %016llx", static_cast<unsigned long long>(hash));
  return text;
}

ncclComm_t HandleOf(const Communicator& communicator) {
  return reinterpret_cast<ncclComm_t>(const_cast<Communicator*>(&communicator));
}

ncclComm_t Register(std::shared_ptr<Communicator> communicator) {
  const ncclComm_t handle = HandleOf(*communicator);
  Table& table = GetTable();
  std::lock_guard lock(table.mutex);
  table.entries.emplace(handle, std::move(communicator));
  return handle;
}

void Unregister(ncclComm_t handle) {
  Table& table = GetTable();
  std::shared_ptr<Communicator> last;  // destroyed after the lock is released: freeing memory takes a while
  std::lock_guard lock(table.mutex);
  if (const auto entry = table.entries.find(handle); entry != table.entries.end()) {
    last = std::move(entry->second);
    table.entries.erase(entry);
  }
}

std::shared_ptr<Communicator> Find(ncclComm_t handle) {
  Table& table = GetTable();
  std::lock_guard lock(table.mutex);
  const auto entry = table.entries.find(handle);
  return entry == table.entries.end() ? nullptr : entry->second;
}

std::shared_ptr<Communicator> FindArgument(const char* function, ncclComm_t handle) {
  if (handle == nullptr) {
    Fail(ncclInvalidArgument, "%s : comm argument is NULL", function);
    return nullptr;
  }
  auto communicator = Find(handle);
  if (communicator == nullptr) {
    Fail(ncclInvalidArgument, "%s : comm argument %p is not a communicator, or was destroyed", function,
         static_cast<void*>(handle));
  }
  return communicator;
}

}  // namespace simgpu::nccl
