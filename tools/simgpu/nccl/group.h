// ncclGroupStart and ncclGroupEnd: calls in between are kept, and carried out together at the outermost end.
#ifndef TOOLS_SIMGPU_NCCL_GROUP_H_
#define TOOLS_SIMGPU_NCCL_GROUP_H_

#include <nccl.h>

#include "tools/simgpu/nccl/formation.h"
#include "tools/simgpu/nccl/operation.h"

namespace simgpu::nccl {

void StartGroup();
ncclResult_t EndGroup();
// Ends the group, and forgets its operations.
void DropGroup();

// Inside a group of this thread: kept. Outside: carried out at once.
ncclResult_t Submit(Operation operation);
ncclResult_t Submit(Formation formation);
// A call of the group was wrong: the group's end reports it too, and carries nothing out. Returns `result`.
ncclResult_t Reject(ncclResult_t result);

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_GROUP_H_
