// Streams, events in them, and what runs between their operations on the host.
#include "tools/simgpu/runtime/stream_api.h"

using namespace simgpu::runtime;

extern "C" {

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return ForwardStream<&StreamFunctions::cuStreamGetPriority>(stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags) {
  return ForwardStream<&StreamFunctions::cuStreamGetFlags>(stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return ForwardStream<&StreamFunctions::cuStreamGetId>(stream, id);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return ForwardStream<&StreamFunctions::cuStreamGetDevice>(stream, device);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t destination, cudaStream_t source) {
  return ForwardStream<&StreamFunctions::cuStreamCopyAttributes>(destination, source);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value) {
  return ForwardStream<&StreamFunctions::cuStreamGetAttribute>(stream, attribute, value);
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value) {
  return ForwardStream<&StreamFunctions::cuStreamSetAttribute>(stream, attribute, value);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  return ForwardStream<&StreamFunctions::cuStreamWaitEvent>(stream, event, flags);
}

// The callback's status parameter has the driver's type there and the runtime's here, with the same values.
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data,
                                  unsigned int flags) {
  return ForwardStream<&StreamFunctions::cuStreamAddCallback>(stream, callback, user_data, flags);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data) {
  return ForwardStream<&StreamFunctions::cuLaunchHostFunc>(stream, function, user_data);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t length, unsigned int flags) {
  return ForwardStream<&StreamFunctions::cuStreamAttachMemAsync>(stream, pointer, length, flags);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return ForwardStream<&StreamFunctions::cuStreamQuery>(stream); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuStreamSynchronize>(stream);
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuEventRecord>(event, stream);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  return ForwardStream<&StreamFunctions::cuEventRecordWithFlags>(event, stream, flags);
}

}  // extern "C"
