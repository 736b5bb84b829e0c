// The API of memory: buffers for zero-copy operation, registration, windows.
#include <memory>

#include "tools/simgpu/nccl/annotation.h"
#include "tools/simgpu/nccl/api.h"
#include "tools/simgpu/nccl/communicator.h"
#include "tools/simgpu/nccl/driver.h"
#include "tools/simgpu/nccl/error.h"
#include "tools/simgpu/nccl/memory.h"

namespace simgpu::nccl {
namespace {

// What the program's handles point to. Registration costs address space and host memory, not device memory.
struct Registration {
  static constexpr std::uint64_t kMagic = 0x6e63636c72656731;
  std::uint64_t magic = kMagic;
  void* buffer;
  std::size_t bytes;
};

ncclResult_t AddRegistration(const char* function, ncclComm_t comm, void* buffer, std::size_t bytes, void** handle) {
  if (FindArgument(function, comm) == nullptr) return ncclInvalidArgument;
  if (buffer == nullptr || bytes == 0 || handle == nullptr) {
    return Fail(ncclInvalidArgument, "%s : no buffer, no size or no place for the handle", function);
  }
  *handle = new Registration{.buffer = buffer, .bytes = bytes};
  return ncclSuccess;
}

ncclResult_t DropRegistration(const char* function, ncclComm_t comm, void* handle) {
  if (FindArgument(function, comm) == nullptr) return ncclInvalidArgument;
  if (handle == nullptr) return ncclSuccess;
  auto* registration = static_cast<Registration*>(handle);
  if (registration->magic != Registration::kMagic) {
    return Fail(ncclInvalidArgument, "%s : %p is not a registration", function, handle);
  }
  registration->magic = 0;
  delete registration;
  return ncclSuccess;
}

}  // namespace
}  // namespace simgpu::nccl

using namespace simgpu::nccl;  // NOLINT: this file is the API, one definition per function of nccl.h

NCCL_API(ncclResult_t, ncclMemAlloc, void** ptr, std::size_t size) {
  static constinit RangeName name("ncclMemAlloc");
  Range range(name);
  if (ptr == nullptr || size == 0) return Fail(ncclInvalidArgument, "ncclMemAlloc : no pointer or no size");
  CUcontext context = nullptr;
  CUdevice device = 0;
  ncclResult_t result = CurrentDevice(name.function(), &context, &device);
  if (result != ncclSuccess) return result;
  CUdeviceptr address = 0;
  result = AllocateDevice(device, &size, &address);
  if (result == ncclSuccess) *ptr = reinterpret_cast<void*>(address);
  return result;
}

NCCL_API(ncclResult_t, ncclMemFree, void* ptr) {
  static constinit RangeName name("ncclMemFree");
  Range range(name);
  return ptr == nullptr ? ncclSuccess : FreeDevice(reinterpret_cast<CUdeviceptr>(ptr));
}

NCCL_API(ncclResult_t, ncclCommRegister, const ncclComm_t comm, void* buff, std::size_t size, void** handle) {
  return AddRegistration("ncclCommRegister", comm, buff, size, handle);
}

NCCL_API(ncclResult_t, ncclCommDeregister, const ncclComm_t comm, void* handle) {
  return DropRegistration("ncclCommDeregister", comm, handle);
}

NCCL_API(ncclResult_t, ncclCommWindowRegister, ncclComm_t comm, void* buff, std::size_t size, ncclWindow_t* win, int) {
  return AddRegistration("ncclCommWindowRegister", comm, buff, size, reinterpret_cast<void**>(win));
}

NCCL_API(ncclResult_t, ncclCommWindowDeregister, ncclComm_t comm, ncclWindow_t win) {
  return DropRegistration("ncclCommWindowDeregister", comm, win);
}
