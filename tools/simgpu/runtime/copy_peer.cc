// Copies between devices: the runtime names them by their ordinals, the driver by their primary contexts.
#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

using namespace simgpu::runtime;

namespace {

// Both primary contexts, and some current context for the call itself.
cudaError_t RetainBoth(int destination_device, int source_device, CUcontext* destination, CUcontext* source) {
  const cudaError_t retained = RetainPrimaryContext(destination_device, destination);
  if (retained != cudaSuccess) return retained;
  const cudaError_t source_retained = RetainPrimaryContext(source_device, source);
  return source_retained != cudaSuccess ? source_retained : EnsureContext();
}

}  // namespace

extern "C" {

// The runtime has these two in one form only, though the driver has both.
cudaError_t cudaMemcpyPeer(void* destination, int destination_device, const void* source, int source_device,
                           size_t count) {
  CUcontext contexts[2] = {};
  const cudaError_t retained = RetainBoth(destination_device, source_device, &contexts[0], &contexts[1]);
  if (retained != cudaSuccess) return Record(retained);
  return Record(CallDriver(GetDriver().legacy.cuMemcpyPeer, destination, contexts[0], source, contexts[1], count));
}

cudaError_t cudaMemcpyPeerAsync(void* destination, int destination_device, const void* source, int source_device,
                                size_t count, cudaStream_t stream) {
  CUcontext contexts[2] = {};
  const cudaError_t retained = RetainBoth(destination_device, source_device, &contexts[0], &contexts[1]);
  if (retained != cudaSuccess) return Record(retained);
  return Record(
      CallDriver(GetDriver().legacy.cuMemcpyPeerAsync, destination, contexts[0], source, contexts[1], count, stream));
}

}  // extern "C"
