#include "tools/simgpu/nccl/kernels.h"

#include <map>
#include <mutex>
#include <string>

#include "tools/simgpu/nccl/data_types.h"
#include "tools/simgpu/nccl/driver.h"
#include "tools/simgpu/nccl/error.h"

namespace simgpu::nccl {
namespace {

constexpr unsigned kThreadsPerBlock = 512;

// Start of a fat binary: what the driver is given to load. There is no code behind it.
constexpr struct {
  std::uint32_t magic = 0xBA55ED50;
  std::uint16_t version = 1;
  std::uint16_t header_bytes = 16;
  std::uint64_t payload_bytes = 0;
} kImage;

// Only sums have kernels of their own; other reductions run inside the sum kernel of their type, under its name, and
// what is built of sends and receives under that name.
std::string PlainName(const Operation& operation) {
  const std::string sum_of_type = std::string("_Sum_") + KernelNameOf(operation.type) + "_RING_LL";
  switch (operation.kind) {
    case OperationKind::kAllGather:
      return "ncclDevKernel_AllGather_RING_LL";
    case OperationKind::kBroadcast:
      return "ncclDevKernel_Broadcast_RING_LL";
    case OperationKind::kAllReduce:
      return "ncclDevKernel_AllReduce" + sum_of_type;
    case OperationKind::kReduce:
      return "ncclDevKernel_Reduce" + sum_of_type;
    case OperationKind::kReduceScatter:
      return "ncclDevKernel_ReduceScatter" + sum_of_type;
    case OperationKind::kAlltoAll:
    case OperationKind::kGather:
    case OperationKind::kScatter:
    case OperationKind::kSend:
    case OperationKind::kReceive:
      return "ncclDevKernel_SendRecv";
  }
  return "ncclDevKernel_Generic";
}

// As the symbol is in the genuine library's fat binary, and so in a profiler's records.
std::string Mangle(const std::string& name) {
  return "_Z" + std::to_string(name.size()) + name + "24ncclDevKernelArgsStorageILm4096EE";
}

class Kernels {
 public:
  // Loads the library at the first use, as lazy loading does.
  CUresult Get(const Driver& driver, const std::string& name, CUkernel* kernel) {
    std::lock_guard lock(mutex_);
    if (library_ == nullptr) {
      const CUresult result = driver.cuLibraryLoadData_(&library_, &kImage, nullptr, nullptr, 0, nullptr, nullptr, 0);
      if (result != CUDA_SUCCESS) return result;
    }
    CUkernel& known = kernels_[name];
    if (known == nullptr) {
      const CUresult result = driver.cuLibraryGetKernel_(&known, library_, name.c_str());
      if (result != CUDA_SUCCESS) return result;
    }
    *kernel = known;
    return CUDA_SUCCESS;
  }

 private:
  std::mutex mutex_;
  CUlibrary library_ = nullptr;
  std::map<std::string, CUkernel> kernels_;
};

}  // namespace

ncclResult_t LaunchKernel(const Operation& operation) {
  static auto* const kernels = new Kernels;
  const Driver* driver = GetDriver();
  if (driver == nullptr) return ncclSystemError;
  static const auto channels = static_cast<unsigned>(ProfileValue("nccl.channels", 24));
  const std::string name = Mangle(PlainName(operation));
  CUkernel kernel = nullptr;
  CUresult result = kernels->Get(*driver, name, &kernel);
  alignas(16) static char arguments[4096];
  void* parameters[] = {arguments};
  if (result == CUDA_SUCCESS) {
    result = driver->cuLaunchKernel_(reinterpret_cast<CUfunction>(kernel), channels, 1, 1, kThreadsPerBlock, 1, 1, 0,
                                     operation.stream, parameters, nullptr);
  }
  if (result == CUDA_SUCCESS) return ncclSuccess;
  char text[64];
  return Fail(ncclUnhandledCudaError, "%s: cannot launch %s: %s", operation.function, name.c_str(),
              Describe(result, text));
}

}  // namespace simgpu::nccl
