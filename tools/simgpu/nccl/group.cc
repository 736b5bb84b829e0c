#include "tools/simgpu/nccl/group.h"

#include <utility>
#include <vector>

#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

// Groups belong to a thread: two threads may fill one each at the same time.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;
  std::vector<Operation> operations;
  std::vector<Formation> formations;
};

thread_local Group group;

}  // namespace

void StartGroup() { ++group.depth; }

ncclResult_t EndGroup() {
  if (group.depth == 0) {
    return Fail(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  }
  if (--group.depth > 0) return ncclSuccess;
  Group calls = std::exchange(group, Group());
  if (calls.error != ncclSuccess) {
    for (const Formation& formation : calls.formations) {
      if (*formation.handle != nullptr) Unregister(std::exchange(*formation.handle, nullptr));
    }
    return calls.error;
  }
  const ncclResult_t formed = Form(std::move(calls.formations));
  if (formed != ncclSuccess && formed != ncclInProgress) return formed;
  const ncclResult_t executed = Execute(calls.operations);
  return executed == ncclSuccess ? formed : executed;
}

void DropGroup() {
  if (group.depth > 0 && --group.depth == 0) group = Group();
}

ncclResult_t Submit(Operation operation) {
  if (const ncclResult_t result = Check(&operation); result != ncclSuccess) return Reject(result);
  if (group.depth > 0) {
    group.operations.push_back(std::move(operation));
    return ncclSuccess;
  }
  std::vector<Operation> alone;
  alone.push_back(std::move(operation));
  return Execute(alone);
}

ncclResult_t Submit(Formation formation) {
  if (group.depth > 0) {
    group.formations.push_back(std::move(formation));
    return ncclSuccess;
  }
  std::vector<Formation> alone;
  alone.push_back(std::move(formation));
  return Form(std::move(alone));
}

ncclResult_t Reject(ncclResult_t result) {
  if (group.depth > 0 && group.error == ncclSuccess) group.error = result;
  return result;
}

}  // namespace simgpu::nccl
