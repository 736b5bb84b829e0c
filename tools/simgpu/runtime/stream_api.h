// First include of every file in stream/. Those files are compiled twice: as they are, and with
// SIMGPU_PER_THREAD_STREAM defined. The second time the toolkit's own header renames each function to its _ptsz or
// _ptds form, and ForwardStream uses the driver's per-thread forms. So a file in stream/ may define nothing but
// functions that have both forms.
#ifndef TOOLS_SIMGPU_RUNTIME_STREAM_API_H_
#define TOOLS_SIMGPU_RUNTIME_STREAM_API_H_

#include "tools/simgpu/runtime/driver.h"
#include "tools/simgpu/runtime/forward.h"

#ifdef SIMGPU_PER_THREAD_STREAM
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#endif
#include "tools/simgpu/runtime/api.h"

namespace simgpu::runtime {
namespace {

inline const StreamFunctions& Functions() {
#ifdef SIMGPU_PER_THREAD_STREAM
  return GetDriver().per_thread;
#else
  return GetDriver().legacy;
#endif
}

template <auto Member, class... Arguments>
cudaError_t ForwardStream(Arguments... arguments) {
  const cudaError_t ready = EnsureContext();
  return Record(ready != cudaSuccess ? ready : CallDriver(Functions().*Member, arguments...));
}

}  // namespace
}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_STREAM_API_H_
