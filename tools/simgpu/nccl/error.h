// Failures of the NCCL stand-in: what a program gets from ncclGetLastError, and what it sees on stderr.
#ifndef TOOLS_SIMGPU_NCCL_ERROR_H_
#define TOOLS_SIMGPU_NCCL_ERROR_H_

#include <nccl.h>

namespace simgpu::nccl {

// Keeps the text for ncclGetLastError, writes it to stderr, and returns `result`. Genuine NCCL is silent unless
// NCCL_DEBUG is set; a simulation has no other log, and a job that ends without a reason helps nobody.
[[gnu::format(printf, 2, 3)]] ncclResult_t Fail(ncclResult_t result, const char* format, ...);

// The newest text of the process. The pointer stays valid, and unchanged, until the same thread asks again.
const char* LastError();

}  // namespace simgpu::nccl

#endif  // TOOLS_SIMGPU_NCCL_ERROR_H_
