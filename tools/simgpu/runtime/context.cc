#include "tools/simgpu/runtime/context.h"

#include <atomic>
#include <mutex>

#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/driver.h"
#include "tools/simgpu/runtime/error.h"

namespace simgpu::runtime {
namespace {

constexpr int kMaxDevices = 64;

// Null until the primary context is retained. Written under `retain_mutex`, read without it.
std::atomic<CUcontext> primary_contexts[kMaxDevices];
std::mutex retain_mutex;

cudaError_t CheckDevice(int device) {
  const Driver& driver = GetDriver();
  if (driver.status != cudaSuccess) return driver.status;
  int count = 0;
  if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS || count == 0) return cudaErrorNoDevice;
  return device >= 0 && device < count && device < kMaxDevices ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t ResetDevice(int device) {
  const Driver& driver = GetDriver();
  const std::lock_guard<std::mutex> lock(retain_mutex);
  // The driver invalidates the context whatever its reference count, so the reference kept here goes with it.
  primary_contexts[device].store(nullptr);
  const CUresult result = driver.cuDevicePrimaryCtxReset(device);
  driver.cuCtxSetCurrent(nullptr);
  return FromDriver(result);
}

}  // namespace

cudaError_t RetainPrimaryContext(int device, CUcontext* context) {
  const cudaError_t valid = CheckDevice(device);
  if (valid != cudaSuccess) return valid;
  std::atomic<CUcontext>& slot = primary_contexts[device];
  *context = slot.load(std::memory_order_acquire);
  if (*context != nullptr) return cudaSuccess;
  const std::lock_guard<std::mutex> lock(retain_mutex);
  *context = slot.load(std::memory_order_acquire);
  if (*context != nullptr) return cudaSuccess;
  const CUresult result = GetDriver().cuDevicePrimaryCtxRetain(context, device);
  if (result == CUDA_SUCCESS) slot.store(*context, std::memory_order_release);
  return FromDriver(result);
}

cudaError_t EnsureContext() {
  const Driver& driver = GetDriver();
  if (driver.status != cudaSuccess) return driver.status;
  CUcontext context = nullptr;
  if (driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) return cudaSuccess;
  const cudaError_t retained = RetainPrimaryContext(0, &context);
  return retained == cudaSuccess ? FromDriver(driver.cuCtxSetCurrent(context)) : retained;
}

cudaError_t CurrentDevice(int* device) {
  const Driver& driver = GetDriver();
  if (driver.status != cudaSuccess) return driver.status;
  CUcontext context = nullptr;
  *device = 0;
  if (driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return cudaSuccess;
  return FromDriver(driver.cuCtxGetDevice(device));
}

}  // namespace simgpu::runtime

using simgpu::runtime::Record;

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  return Record(device == nullptr ? cudaErrorInvalidValue : simgpu::runtime::CurrentDevice(device));
}

cudaError_t cudaSetDevice(int device) {
  CUcontext context = nullptr;
  const cudaError_t retained = simgpu::runtime::RetainPrimaryContext(device, &context);
  if (retained != cudaSuccess) return Record(retained);
  return Record(simgpu::runtime::GetDriver().cuCtxSetCurrent(context));
}

cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags) {
  if (flags == cudaInitDeviceFlagsAreValid) {
    const cudaError_t valid = simgpu::runtime::CheckDevice(device);
    if (valid != cudaSuccess) return Record(valid);
    simgpu::runtime::GetDriver().cuDevicePrimaryCtxSetFlags(device, device_flags);
  }
  CUcontext context = nullptr;
  return Record(simgpu::runtime::RetainPrimaryContext(device, &context));
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  int device = 0;
  const cudaError_t found = simgpu::runtime::CurrentDevice(&device);
  if (found != cudaSuccess) return Record(found);
  return Record(simgpu::runtime::GetDriver().cuDevicePrimaryCtxSetFlags(device, flags));
}

cudaError_t cudaGetDeviceFlags(unsigned int* flags) {
  if (flags == nullptr) return Record(cudaErrorInvalidValue);
  int device = 0;
  int active = 0;
  const cudaError_t found = simgpu::runtime::CurrentDevice(&device);
  if (found != cudaSuccess) return Record(found);
  return Record(simgpu::runtime::GetDriver().cuDevicePrimaryCtxGetState(device, flags, &active));
}

cudaError_t cudaDeviceReset() {
  int device = 0;
  const cudaError_t found = simgpu::runtime::CurrentDevice(&device);
  return Record(found == cudaSuccess ? simgpu::runtime::ResetDevice(device) : found);
}

cudaError_t cudaDeviceSynchronize() {
  const cudaError_t ready = simgpu::runtime::EnsureContext();
  return Record(ready == cudaSuccess ? simgpu::runtime::FromDriver(simgpu::runtime::GetDriver().cuCtxSynchronize())
                                     : ready);
}

}  // extern "C"
