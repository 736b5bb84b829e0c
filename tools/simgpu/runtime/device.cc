#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

using namespace simgpu::runtime;

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return Record(cudaErrorInvalidValue);
  const Driver& driver = GetDriver();
  *version = 0;  // no driver is not an error of this function
  return driver.cuDriverGetVersion == nullptr ? cudaSuccess : Record(driver.cuDriverGetVersion(version));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Record(cudaErrorInvalidValue);
  *version = SIMGPU_RUNTIME_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return Record(cudaErrorInvalidValue);
  *count = 0;
  const cudaError_t counted = ForwardWithoutContext<&Driver::cuDeviceGetCount>(count);
  return counted == cudaSuccess && *count == 0 ? Record(cudaErrorNoDevice) : counted;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return ForwardWithoutContext<&Driver::cuDeviceGetAttribute>(value, attribute, device);
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return ForwardWithoutContext<&Driver::cuDeviceGetPCIBusId>(id, length, device);
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return ForwardWithoutContext<&Driver::cuDeviceGetByPCIBusId>(device, id);
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int source, int destination) {
  return ForwardWithoutContext<&Driver::cuDeviceGetP2PAttribute>(value, attribute, source, destination);
}

cudaError_t cudaDeviceGetHostAtomicCapabilities(unsigned int* capabilities, const cudaAtomicOperation* operations,
                                                unsigned int count, int device) {
  return ForwardWithoutContext<&Driver::cuDeviceGetHostAtomicCapabilities>(capabilities, operations, count, device);
}

cudaError_t cudaDeviceGetP2PAtomicCapabilities(unsigned int* capabilities, const cudaAtomicOperation* operations,
                                               unsigned int count, int source, int destination) {
  return ForwardWithoutContext<&Driver::cuDeviceGetP2PAtomicCapabilities>(capabilities, operations, count, source,
                                                                          destination);
}

cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return ForwardWithoutContext<&Driver::cuDeviceCanAccessPeer>(can_access, device, peer);
}

// The driver opens access to a context, the runtime to a device: the context is the peer's primary one.
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  CUcontext context = nullptr;
  const cudaError_t retained = RetainPrimaryContext(peer, &context);
  return retained != cudaSuccess ? Record(retained) : Forward<&Driver::cuCtxEnablePeerAccess>(context, flags);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  CUcontext context = nullptr;
  const cudaError_t retained = RetainPrimaryContext(peer, &context);
  return retained != cudaSuccess ? Record(retained) : Forward<&Driver::cuCtxDisablePeerAccess>(context);
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* width, const cudaChannelFormatDesc* format, int device) {
  if (format == nullptr) return Record(cudaErrorInvalidValue);
  const unsigned channels =
      (format->x != 0 ? 1U : 0U) + (format->y != 0 ? 1U : 0U) + (format->z != 0 ? 1U : 0U) + (format->w != 0 ? 1U : 0U);
  return ForwardWithoutContext<&Driver::cuDeviceGetTexture1DLinearMaxWidth>(width, CU_AD_FORMAT_UNSIGNED_INT32,
                                                                            channels, device);
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) { return Forward<&Driver::cuCtxSetLimit>(limit, value); }

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) { return Forward<&Driver::cuCtxGetLimit>(value, limit); }

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) { return Forward<&Driver::cuCtxGetCacheConfig>(config); }

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) { return Forward<&Driver::cuCtxSetCacheConfig>(config); }

// Shared memory banks have had one width since the Maxwell generation.
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  if (config == nullptr) return Record(cudaErrorInvalidValue);
  *config = cudaSharedMemBankSizeFourByte;
  return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return Forward<&Driver::cuCtxGetStreamPriorityRange>(least, greatest);
}

cudaError_t cudaCtxResetPersistingL2Cache() { return Forward<&Driver::cuCtxResetPersistingL2Cache>(); }

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget target,
                                               cudaFlushGPUDirectRDMAWritesScope scope) {
  return Forward<&Driver::cuFlushGPUDirectRDMAWrites>(target, scope);
}

cudaError_t cudaDeviceRegisterAsyncNotification(int device, cudaAsyncCallback callback, void* user_data,
                                                cudaAsyncCallbackHandle_t* handle) {
  return ForwardWithoutContext<&Driver::cuDeviceRegisterAsyncNotification>(device, callback, user_data, handle);
}

cudaError_t cudaDeviceUnregisterAsyncNotification(int device, cudaAsyncCallbackHandle_t handle) {
  return ForwardWithoutContext<&Driver::cuDeviceUnregisterAsyncNotification>(device, handle);
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  int available = 0;
  const cudaError_t counted = cudaGetDeviceCount(&available);
  if (counted != cudaSuccess) return counted;
  for (int i = 0; i < count; ++i) {
    if (devices[i] < 0 || devices[i] >= available) return Record(cudaErrorInvalidDevice);
  }
  return cudaSuccess;
}

// All simulated devices are alike, so the first one matches as well as any.
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  if (device == nullptr || wanted == nullptr) return Record(cudaErrorInvalidValue);
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaProfilerStart() { return cudaSuccess; }

cudaError_t cudaProfilerStop() { return cudaSuccess; }

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callback, void* user_data, cudaLogsCallbackHandle* handle) {
  return ForwardWithoutContext<&Driver::cuLogsRegisterCallback>(callback, user_data, handle);
}

cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle handle) {
  return ForwardWithoutContext<&Driver::cuLogsUnregisterCallback>(handle);
}

cudaError_t cudaLogsCurrent(cudaLogIterator* iterator, unsigned int flags) {
  return ForwardWithoutContext<&Driver::cuLogsCurrent>(iterator, flags);
}

cudaError_t cudaLogsDumpToFile(cudaLogIterator* iterator, const char* path, unsigned int flags) {
  return ForwardWithoutContext<&Driver::cuLogsDumpToFile>(iterator, path, flags);
}

cudaError_t cudaLogsDumpToMemory(cudaLogIterator* iterator, char* buffer, size_t* size, unsigned int flags) {
  return ForwardWithoutContext<&Driver::cuLogsDumpToMemory>(iterator, buffer, size, flags);
}

cudaError_t cudaGetExportTable(const void** table, const cudaUUID_t* id) {
  return ForwardWithoutContext<&Driver::cuGetExportTable>(table, id);
}

}  // extern "C"
