#include "interpose/hooks/device.h"

#include <unistd.h>

#include <atomic>

#include "interpose/core/definitions.h"
#include "interpose/core/driver_calls.h"
#include "interpose/core/line.h"
#include "interpose/core/options.h"
#include "interpose/core/process.h"
#include "interpose/core/real_dlsym.h"
#include "interpose/core/recorder.h"

namespace ledger::hooks {
namespace {

using record::Kind;

constexpr int kMaxDevices = 64;

constinit std::atomic<std::uint64_t> g_noted_devices{0};
constinit std::atomic<std::uint32_t> g_noted_in{0};  // the file's generation that g_noted_devices is about
constinit std::atomic<std::uint64_t> g_last_used[kMaxDevices] = {};
constinit std::atomic<int> g_captures{0};

// "simgpu: driver 1": the simulated driver has one private table, under this id.
constexpr CUuuid kSimulatedDriver = {{'s', 'i', 'm', 'g', 'p', 'u', ':', ' ', 'd', 'r', 'i', 'v', 'e', 'r', ' ', '1'}};

record::Commit CommitFor(Kind kind, std::int8_t device) {
  record::Commit commit = {};
  commit.kind = static_cast<std::uint16_t>(kind);
  commit.layer = record::Layer::kDriver;
  commit.device = device;
  return commit;
}

int Attribute(const DriverCalls& driver, CUdevice_attribute attribute, CUdevice device) {
  int value = 0;
  if (driver.cuDeviceGetAttribute == nullptr ||
      driver.cuDeviceGetAttribute(&value, attribute, device) != CUDA_SUCCESS) {
    return 0;
  }
  return value;
}

[[gnu::cold]] void AppendDevice(std::int8_t device) {
  const DriverCalls& driver = Driver();
  record::DeviceInfo info = {};
  info.commit = CommitFor(Kind::kDevice, device);
  char text[128] = {};
  if (driver.cuDeviceGetName != nullptr && driver.cuDeviceGetName(text, sizeof(text) - 1, device) == CUDA_SUCCESS) {
    info.name = InternText(text);
  }
  if (driver.cuDeviceGetPCIBusId != nullptr &&
      driver.cuDeviceGetPCIBusId(text, sizeof(text) - 1, device) == CUDA_SUCCESS) {
    info.pci = InternText(text);
  }
  CUuuid uuid = {};
  if (driver.cuDeviceGetUuid_v2 != nullptr && driver.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS) {
    static_assert(sizeof(uuid) == sizeof(info.uuid));
    std::memcpy(info.uuid, &uuid, sizeof(uuid));
  }
  std::size_t total = 0;
  if (driver.cuDeviceTotalMem_v2 != nullptr && driver.cuDeviceTotalMem_v2(&total, device) == CUDA_SUCCESS) {
    info.total_bytes = total;
  }
  const void* table = nullptr;
  if (driver.cuGetExportTable != nullptr && driver.cuGetExportTable(&table, &kSimulatedDriver) == CUDA_SUCCESS) {
    info.flags |= record::kDeviceSimulated;
  }
  info.compute_capability =
      static_cast<std::uint32_t>(10 * Attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) +
                                 Attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  Append(info);
}

bool MayAsk() { return CurrentOptions().ask_memory && g_captures.load(std::memory_order_relaxed) <= 0; }

bool AskMemory(std::size_t& free_bytes, std::size_t& total_bytes) {
  const DriverCalls& driver = Driver();
  return driver.cuMemGetInfo_v2 != nullptr && driver.cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS;
}

void AppendSample(Entry why, std::int8_t device, std::size_t free_bytes, std::size_t total_bytes) {
  record::DeviceSample sample = {};
  sample.commit = CommitFor(Kind::kDeviceSample, device);
  sample.free_bytes = free_bytes;
  sample.total_bytes = total_bytes;
  sample.scope = CurrentScope();
  sample.why = InternText(InfoOf(why).symbol);
  Append(sample);
}

// Without a driver that can be asked (a runtime that stands alone), the runtime knows its device.
std::int8_t RuntimeDevice() {
  using GetDevice = decltype(&cudaGetDevice);
  static constinit std::atomic<GetDevice> found{nullptr};
  GetDevice get = found.load(std::memory_order_relaxed);
  for (const char* const soname : {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"}) {
    if (get != nullptr) break;
    get = reinterpret_cast<GetDevice>(SymbolOfLoaded(soname, "cudaGetDevice"));
    found.store(get, std::memory_order_relaxed);
  }
  int device = record::kNoDevice;
  if (get == nullptr || get(&device) != cudaSuccess) return record::kNoDevice;
  return static_cast<std::int8_t>(device);
}

}  // namespace

std::int8_t CurrentDevice() {
  const DriverCalls& driver = Driver();
  if (driver.cuCtxGetDevice == nullptr) return RuntimeDevice();
  CUdevice device = record::kNoDevice;
  if (driver.cuCtxGetDevice(&device) != CUDA_SUCCESS) return record::kNoDevice;
  return static_cast<std::int8_t>(device);
}

void NoteDevice(std::int8_t device) {
  if (device < 0 || device >= kMaxDevices) return;
  // A child of fork has a file of its own, and has seen no device in it.
  const std::uint32_t generation = FileGeneration();
  if (g_noted_in.load(std::memory_order_relaxed) != generation) [[unlikely]] {
    g_noted_devices.store(0, std::memory_order_relaxed);
    g_noted_in.store(generation, std::memory_order_relaxed);
  }
  const std::uint64_t bit = std::uint64_t{1} << device;
  if ((g_noted_devices.load(std::memory_order_relaxed) & bit) != 0) [[likely]]
    return;
  if ((g_noted_devices.fetch_or(bit) & bit) == 0) AppendDevice(device);
}

std::uint64_t DeviceUsed(std::int8_t device) {
  if (device < 0 || device >= kMaxDevices || !MayAsk() || CurrentDevice() != device) return 0;
  std::size_t free_bytes = 0, total_bytes = 0;
  if (!AskMemory(free_bytes, total_bytes)) return 0;
  const std::uint64_t used = total_bytes - free_bytes;
  g_last_used[device].store(used, std::memory_order_relaxed);
  return used;
}

void SampleDevice(Entry why) {
  if (!MayAsk()) return;
  const std::int8_t device = CurrentDevice();
  std::size_t free_bytes = 0, total_bytes = 0;
  if (device < 0 || device >= kMaxDevices || !AskMemory(free_bytes, total_bytes)) return;
  const std::uint64_t used = total_bytes - free_bytes;
  if (g_last_used[device].exchange(used, std::memory_order_relaxed) == used) return;
  NoteDevice(device);
  AppendSample(why, device, free_bytes, total_bytes);
}

void SampleContext(Entry why, CUcontext context, std::int8_t device) {
  const DriverCalls& driver = Driver();
  if (!MayAsk() || device < 0 || device >= kMaxDevices) return;
  if (driver.cuCtxPushCurrent_v2 == nullptr || driver.cuCtxPopCurrent_v2 == nullptr) return;
  if (driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) return;
  std::size_t free_bytes = 0, total_bytes = 0;
  const bool known = AskMemory(free_bytes, total_bytes);
  CUcontext popped;
  driver.cuCtxPopCurrent_v2(&popped);
  if (!known) return;
  g_last_used[device].store(total_bytes - free_bytes, std::memory_order_relaxed);
  NoteDevice(device);
  AppendSample(why, device, free_bytes, total_bytes);
}

void SamplePool(CUmemoryPool pool, Entry why) {
  const DriverCalls& driver = Driver();
  if (driver.cuMemPoolGetAttribute == nullptr) return;
  const std::int8_t device = CurrentDevice();
  if (pool == nullptr && (device < 0 || driver.cuDeviceGetMemPool == nullptr ||
                          driver.cuDeviceGetMemPool(&pool, device) != CUDA_SUCCESS)) {
    return;
  }
  record::PoolSample sample = {};
  sample.commit = CommitFor(Kind::kPoolSample, device);
  sample.pool = reinterpret_cast<std::uint64_t>(pool);
  const struct {
    CUmemPool_attribute attribute;
    std::uint64_t* value;
  } kCounters[] = {{CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &sample.used_bytes},
                   {CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &sample.reserved_bytes},
                   {CU_MEMPOOL_ATTR_USED_MEM_HIGH, &sample.used_high_bytes},
                   {CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &sample.reserved_high_bytes}};
  for (const auto& counter : kCounters) {
    cuuint64_t value = 0;
    if (driver.cuMemPoolGetAttribute(pool, counter.attribute, &value) != CUDA_SUCCESS) return;
    *counter.value = value;
  }
  sample.scope = CurrentScope();
  Append(sample);
  // With several pools this asks the driver more often than it must, and notes only what has changed.
  static constinit std::atomic<std::uint64_t> last_reserved{0};
  if (last_reserved.exchange(sample.reserved_bytes, std::memory_order_relaxed) != sample.reserved_bytes)
    SampleDevice(why);
}

void NotePoolGone(CUmemoryPool pool) {
  record::PoolSample sample = {};
  sample.commit = CommitFor(Kind::kPoolSample, CurrentDevice());
  sample.pool = reinterpret_cast<std::uint64_t>(pool);
  sample.scope = CurrentScope();
  Append(sample);
}

CUmemoryPool PoolOf(std::uint64_t address) {
  const DriverCalls& driver = Driver();
  CUmemoryPool pool = nullptr;
  if (driver.cuPointerGetAttribute == nullptr ||
      driver.cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address) != CUDA_SUCCESS) {
    return nullptr;
  }
  return pool;
}

void NoteCaptureBegin() { g_captures.fetch_add(1, std::memory_order_relaxed); }

void NoteCaptureEnd() {
  // A capture that began on a way we don't see must not make the count negative, or the next one would not count.
  int open = g_captures.load(std::memory_order_relaxed);
  while (open > 0 && !g_captures.compare_exchange_weak(open, open - 1, std::memory_order_relaxed)) {
  }
}

bool IsCapturing(CUstream stream, bool per_thread) {
  const DriverCalls& driver = Driver();
  if (driver.cuStreamIsCapturing == nullptr) return false;
  if (stream == nullptr && per_thread) stream = CU_STREAM_PER_THREAD;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

}  // namespace ledger::hooks
