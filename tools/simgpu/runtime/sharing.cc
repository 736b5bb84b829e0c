// Memory and events that are shared with other processes or with other APIs.
#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

using namespace simgpu::runtime;

extern "C" {

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return Forward<&Driver::cuIpcGetEventHandle>(handle, event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return Forward<&Driver::cuIpcOpenEventHandle>(event, handle);
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return Forward<&Driver::cuIpcGetMemHandle>(handle, pointer);
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t handle, unsigned int flags) {
  return Forward<&Driver::cuIpcOpenMemHandle>(pointer, handle, flags);
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) { return Forward<&Driver::cuIpcCloseMemHandle>(pointer); }

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t* memory, const cudaExternalMemoryHandleDesc* description) {
  return Forward<&Driver::cuImportExternalMemory>(memory, description);
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void** pointer, cudaExternalMemory_t memory,
                                              const cudaExternalMemoryBufferDesc* description) {
  return Forward<&Driver::cuExternalMemoryGetMappedBuffer>(pointer, memory, description);
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory) {
  return Forward<&Driver::cuDestroyExternalMemory>(memory);
}

cudaError_t cudaImportExternalSemaphore(cudaExternalSemaphore_t* semaphore,
                                        const cudaExternalSemaphoreHandleDesc* description) {
  return Forward<&Driver::cuImportExternalSemaphore>(semaphore, description);
}

cudaError_t cudaDestroyExternalSemaphore(cudaExternalSemaphore_t semaphore) {
  return Forward<&Driver::cuDestroyExternalSemaphore>(semaphore);
}

}  // extern "C"
