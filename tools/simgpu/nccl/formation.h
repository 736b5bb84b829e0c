// The making of communicators: by joining through a unique id, and out of an existing one.
#ifndef TOOLS_SIMGPU_NCCL_FORMATION_H_
#define TOOLS_SIMGPU_NCCL_FORMATION_H_

#include <nccl.h>

#include <memory>
#include <vector>

#include "tools/simgpu/nccl/communicator.h"
#include "tools/simgpu/nccl/invitation.h"
#include "tools/simgpu/nccl/task.h"

namespace simgpu::nccl {

// A communicator in the making: a task, and where its handle goes.
struct Formation {
  std::unique_ptr<Task> task;
  ncclComm_t* handle = nullptr;
  bool blocking = true;
};

// Reads what this library knows of a program's configuration; null gives the defaults. The structure may be older
// (shorter) or newer than the header that this library was compiled with.
ncclResult_t ReadOptions(const char* function, const ncclConfig_t* config, CommunicatorOptions* options);

// Prepares the joining of `rank` on the current device. The handle is in `*handle` at once, so that a communicator that
// is made in the background can be asked for its state.
ncclResult_t PrepareJoin(const char* function, int ranks, int rank, const ncclUniqueId& id,
                         const CommunicatorOptions& options, ncclComm_t* handle, Formation* formation);

// Prepares ncclCommSplit: members with the same colour, ordered by key; `*handle` is set when it is made.
ncclResult_t PrepareSplit(std::shared_ptr<Communicator> parent, int color, int key, const CommunicatorOptions& options,
                          ncclComm_t* handle, Formation* formation);

// Prepares ncclCommShrink: all but `excluded` (ranks of the parent), which don't take part.
ncclResult_t PrepareShrink(std::shared_ptr<Communicator> parent, std::vector<int> excluded,
                           const CommunicatorOptions& options, ncclComm_t* handle, Formation* formation);

// Runs them, in this thread, or in one of its own with ncclInProgress as the answer if none of them is blocking.
ncclResult_t Form(std::vector<Formation> formations);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_FORMATION_H_
