// Streams and events, as far as the default stream's two meanings make no difference; the rest is in stream/.
#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

using namespace simgpu::runtime;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return Forward<&Driver::cuStreamCreateWithPriority>(stream, flags, priority);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return Forward<&Driver::cuStreamDestroy>(stream); }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  return Forward<&Driver::cuEventCreate>(event, flags);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventQuery(cudaEvent_t event) { return Forward<&Driver::cuEventQuery>(event); }

cudaError_t cudaEventSynchronize(cudaEvent_t event) { return Forward<&Driver::cuEventSynchronize>(event); }

cudaError_t cudaEventDestroy(cudaEvent_t event) { return Forward<&Driver::cuEventDestroy>(event); }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return Forward<&Driver::cuEventElapsedTime>(milliseconds, start, end);
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return Forward<&Driver::cuThreadExchangeStreamCaptureMode>(mode);
}

}  // extern "C"
