#include "tools/simgpu/cupti/collector.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <vector>

#include "tools/simgpu/cupti/buffers.h"

namespace simgpu::cupti {
namespace {

constexpr int kKinds = 64;  // bits of Collector::enabled_; CUPTI 13 has fewer kinds

constexpr std::uint64_t Bit(CUpti_ActivityKind kind) { return std::uint64_t{1} << kind; }

// The kinds that are made from the driver's activity. All others are accepted and never produce a record.
constexpr std::uint64_t kDriven = Bit(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) | Bit(CUPTI_ACTIVITY_KIND_KERNEL) |
                                  Bit(CUPTI_ACTIVITY_KIND_MEMCPY) | Bit(CUPTI_ACTIVITY_KIND_MEMSET) |
                                  Bit(CUPTI_ACTIVITY_KIND_RUNTIME) | Bit(CUPTI_ACTIVITY_KIND_DRIVER);

using ExternalIds = std::array<std::vector<std::uint64_t>, CUPTI_EXTERNAL_CORRELATION_KIND_SIZE>;

ExternalIds& ThreadExternalIds() {
  thread_local ExternalIds ids;
  return ids;
}

bool IsValid(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID && kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

std::uint64_t RealTime() {
  timespec time = {};
  clock_gettime(CLOCK_REALTIME, &time);
  constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;
  return static_cast<std::uint64_t>(time.tv_sec) * kNanosecondsPerSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

// Null where the driver isn't the simulated one.
const ExportTable* DriverTable() {
  static const ExportTable* const table = []() -> const ExportTable* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return nullptr;
    auto get = reinterpret_cast<decltype(&cuGetExportTable)>(dlsym(library, "cuGetExportTable"));
    const void* found = nullptr;
    if (get == nullptr || get(&found, &kExportTableId) != CUDA_SUCCESS) return nullptr;
    return static_cast<const ExportTable*>(found);
  }();
  return table;
}

// The runtime function that such activity usually comes from: the driver doesn't know the caller's function.
CUpti_CallbackId CallbackId(const Activity& activity) {
  if (activity.graph_node != 0) return CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000;
  switch (activity.kind) {
    case ActivityKind::kKernel:
      return CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000;
    case ActivityKind::kMemcpy:
      return CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
    case ActivityKind::kMemset:
      return CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020;
  }
  return CUPTI_RUNTIME_TRACE_CBID_INVALID;
}

CUpti_ActivityKernel10 KernelRecord(const Activity& activity, std::uint64_t start, std::uint64_t end,
                                    CUpti_ActivityKind kind) {
  constexpr std::uint16_t kRegistersPerThread = 32;
  CUpti_ActivityKernel10 record = {};
  record.kind = kind;
  record.start = start;
  record.end = end;
  record.completed = end;
  record.deviceId = static_cast<std::uint32_t>(activity.device);
  record.contextId = activity.context_id;
  record.streamId = activity.stream_id;
  record.correlationId = activity.correlation;
  record.gridX = static_cast<std::int32_t>(activity.grid[0]);
  record.gridY = static_cast<std::int32_t>(activity.grid[1]);
  record.gridZ = static_cast<std::int32_t>(activity.grid[2]);
  record.blockX = static_cast<std::int32_t>(activity.block[0]);
  record.blockY = static_cast<std::int32_t>(activity.block[1]);
  record.blockZ = static_cast<std::int32_t>(activity.block[2]);
  record.dynamicSharedMemory = static_cast<std::int32_t>(activity.shared_bytes);
  record.registersPerThread = kRegistersPerThread;
  record.graphNodeId = activity.graph_node;
  return record;
}

std::uint8_t MemoryKindOfSource(std::uint32_t copy_kind) {
  return copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE
                                                      : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

std::uint8_t MemoryKindOfDestination(std::uint32_t copy_kind) {
  return copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE
                                                      : CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
}

CUpti_ActivityMemcpy6 MemcpyRecord(const Activity& activity, std::uint64_t start, std::uint64_t end) {
  CUpti_ActivityMemcpy6 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = static_cast<std::uint8_t>(activity.copy_kind);
  record.srcKind = MemoryKindOfSource(activity.copy_kind);
  record.dstKind = MemoryKindOfDestination(activity.copy_kind);
  record.bytes = activity.bytes;
  record.start = start;
  record.end = end;
  record.deviceId = static_cast<std::uint32_t>(activity.device);
  record.contextId = activity.context_id;
  record.streamId = activity.stream_id;
  record.correlationId = activity.correlation;
  record.graphNodeId = activity.graph_node;
  record.copyCount = 1;
  return record;
}

CUpti_ActivityMemset4 MemsetRecord(const Activity& activity, std::uint64_t start, std::uint64_t end) {
  CUpti_ActivityMemset4 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  record.bytes = activity.bytes;
  record.start = start;
  record.end = end;
  record.deviceId = static_cast<std::uint32_t>(activity.device);
  record.contextId = activity.context_id;
  record.streamId = activity.stream_id;
  record.correlationId = activity.correlation;
  record.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.graphNodeId = activity.graph_node;
  return record;
}

}  // namespace

Collector& Collector::Get() {
  static auto* collector = new Collector;
  return *collector;
}

std::uint64_t Collector::Now() const {
  const CUpti_TimestampCallbackFunc clock = clock_.load();
  return clock != nullptr ? clock() : RealTime();
}

CUptiResult Collector::Enable(CUpti_ActivityKind kind) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= kKinds) return CUPTI_ERROR_INVALID_KIND;
  enabled_.fetch_or(Bit(kind));
  return UpdateSubscription();
}

CUptiResult Collector::Disable(CUpti_ActivityKind kind) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= kKinds) return CUPTI_ERROR_INVALID_KIND;
  enabled_.fetch_and(~Bit(kind));
  return UpdateSubscription();
}

void Collector::DisableAll() {
  enabled_.store(0);
  UpdateSubscription();
}

CUptiResult Collector::UpdateSubscription() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool wanted = (enabled_.load() & kDriven) != 0;
  if (wanted == subscribed_) return CUPTI_SUCCESS;
  const ExportTable* table = DriverTable();
  if (table == nullptr) return CUPTI_ERROR_UNKNOWN;  // as the genuine one says without a driver of its kind
  if (table->subscribe_activity(wanted ? &Collector::OnActivity : nullptr, this) != CUDA_SUCCESS) {
    return CUPTI_ERROR_NOT_COMPATIBLE;
  }
  subscribed_ = wanted;
  return CUPTI_SUCCESS;
}

CUptiResult Collector::PushExternalId(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  if (!IsValid(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  ThreadExternalIds()[kind].push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult Collector::PopExternalId(CUpti_ExternalCorrelationKind kind, std::uint64_t* id) {
  if (!IsValid(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  std::vector<std::uint64_t>& ids = ThreadExternalIds()[kind];
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (id != nullptr) *id = ids.back();
  ids.pop_back();
  return CUPTI_SUCCESS;
}

void Collector::OnActivity(void* collector, const Activity* activity) {
  static_cast<Collector*>(collector)->Collect(*activity);
}

// The driver's times are CUPTI's own clock. On a client's clock the operation begins now, and lasts as many of the
// clock's units as the driver says nanoseconds: nothing ran, so that no duration is more than a token.
Collector::Interval Collector::DeviceInterval(const Activity& activity) const {
  if (clock_.load() == nullptr) return {activity.start_ns, activity.end_ns};
  const std::uint64_t now = Now();
  return {now, now + (activity.end_ns - activity.start_ns)};
}

void Collector::Collect(const Activity& activity) {
  const Interval interval = DeviceInterval(activity);
  // The nodes of one graph launch come from one call.
  thread_local std::uint32_t last_correlation = 0;
  if (activity.correlation != last_correlation) {
    last_correlation = activity.correlation;
    RecordCall(activity, interval);
  }
  switch (activity.kind) {
    case ActivityKind::kKernel:
      for (const CUpti_ActivityKind kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_KERNEL}) {
        if (!IsEnabled(kind)) continue;
        CUpti_ActivityKernel10 record = KernelRecord(activity, interval.start, interval.end, kind);
        record.name = activity.name;
        Buffers::Get().Append(record);
        break;  // the two kinds exclude each other
      }
      break;
    case ActivityKind::kMemcpy:
      if (IsEnabled(CUPTI_ACTIVITY_KIND_MEMCPY)) {
        Buffers::Get().Append(MemcpyRecord(activity, interval.start, interval.end));
      }
      break;
    case ActivityKind::kMemset:
      if (IsEnabled(CUPTI_ACTIVITY_KIND_MEMSET)) {
        Buffers::Get().Append(MemsetRecord(activity, interval.start, interval.end));
      }
      break;
  }
}

void Collector::RecordCall(const Activity& activity, Interval device) const {
  if (IsEnabled(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) RecordExternalIds(activity.correlation);
  if (!IsEnabled(CUPTI_ACTIVITY_KIND_RUNTIME)) return;
  CUpti_ActivityAPI record = {};
  record.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  record.cbid = CallbackId(activity);
  record.start = device.start;
  record.end = device.end;
  record.processId = static_cast<std::uint32_t>(getpid());
  // Clients join records to their threads by the pthread handle's lower half.
  record.threadId = static_cast<std::uint32_t>(pthread_self());
  record.correlationId = activity.correlation;
  Buffers::Get().Append(record);
}

void Collector::RecordExternalIds(std::uint32_t correlation) const {
  const ExternalIds& ids = ThreadExternalIds();
  for (std::size_t kind = 0; kind < ids.size(); ++kind) {
    if (ids[kind].empty()) continue;
    CUpti_ActivityExternalCorrelation record = {};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    record.externalId = ids[kind].back();
    record.correlationId = correlation;
    Buffers::Get().Append(record);
  }
}

}  // namespace simgpu::cupti
