// PyTorch's caching allocator tells its profiler about every block, whether a profile is taken or not, by three
// functions that libc10_cuda.so calls across the border of libc10.so. They are in our hands there, and go on to
// PyTorch's own.
//
// They are called under the allocator's lock for the device: nothing here may take the interpreter's lock, call PyTorch
// or call CUDA. `allocated` and `reserved` are the allocator's totals after the event, so that what a reader adds up
// can be checked at every event. The size is the block's, not the tensor's, and a free is told when the owner lets go
// of the block, even if a stream will use it for longer.
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose/core/recorder.h"
#include "interpose/core/workspace_table.h"
#include "interpose/torch/adapter_host.h"
#include "interpose/torch/layers.h"

namespace ledger {
namespace {

// c10::Device: passed in one register.
struct Device {
  std::int8_t type;
  std::int8_t index;
};
static_assert(sizeof(Device) == 2);
constexpr std::int8_t kCuda = 1;  // c10::DeviceType::CUDA

// PyTorch spelt the totals as int64_t (l) before it spelt them as size_t (m); they look alike in registers.
#define LEDGER_REPORT_MEMORY "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define LEDGER_REPORT_MEMORY_SIGNED "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define LEDGER_REPORT_OOM "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#define LEDGER_REPORT_OOM_SIGNED "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"

using ReportMemory = void(void*, std::int64_t, std::size_t, std::size_t, Device);
using ReportOom = void(std::int64_t, std::size_t, std::size_t, Device);

// Stands for an original that is nowhere to be found, so that it is looked for only once.
template <typename Function>
struct Nothing;
template <typename... Arguments>
struct Nothing<void(Arguments...)> {
  static void Do(Arguments...) {}
};

// PyTorch's own function behind one of ours. Looked up at the first call, kept for good.
template <typename Function>
class Original {
 public:
  constexpr explicit Original(const char* name) : name_(name) {}

  template <typename... Arguments>
  void operator()(const void* caller, Function* ours, Arguments... arguments) {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) [[unlikely]]
      function = Find(caller, ours);
    function(arguments...);
  }

 private:
  // libc10.so is opened with a scope of its own, where RTLD_NEXT finds nothing. In a PyTorch that was linked in one
  // piece there is no libc10.so, and the function lies where the caller finds its symbols.
  [[gnu::cold, gnu::noinline]] Function* Find(const void* caller, Function* ours) {
    const ErrnoSaver errno_saver;
    Function* found = In("libc10.so", ours);
    if (Dl_info info; found == nullptr && dladdr(caller, &info) != 0) found = In(info.dli_fname, ours);
    if (found == nullptr) {
      Count(record::Loss::kUnresolved);
      found = Nothing<Function>::Do;
    }
    function_.store(found, std::memory_order_release);
    return found;
  }

  Function* In(const char* library, Function* ours) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);  // never closed: what we found stays valid
    if (handle == nullptr) return nullptr;
    auto* found = reinterpret_cast<Function*>(dlsym(handle, name_));
    return found == ours ? nullptr : found;
  }

  const char* name_;
  std::atomic<Function*> function_{nullptr};
};

// The block that is freed next stays out of use for some time.
void AppendPending(const record::Block& block) {
  record::BlockDetail record = {};
  record.commit = block.commit;
  record.commit.kind = static_cast<std::uint16_t>(record::Kind::kBlockPending);
  record.address = block.address;
  record.size = block.size;
  record.scope = block.scope;
  Append(record);
}

void RecordBlock(void* address, std::int64_t change, std::size_t allocated, std::size_t reserved, Device device) {
  const ErrnoSaver errno_saver;
  if (!Active() && !Wake()) return;
  record::Block record = {};
  const record::Kind kind = change >= 0 ? record::Kind::kBlockAlloc : record::Kind::kBlockFree;
  record.commit = {static_cast<std::uint16_t>(kind), record::Layer::kAllocator, device.index, 0};
  record.address = reinterpret_cast<std::uintptr_t>(address);
  record.size = change >= 0 ? static_cast<std::uint64_t>(change) : -static_cast<std::uint64_t>(change);
  record.allocated = allocated;
  record.reserved_total = reserved;
  record.scope = CurrentScope();
  if (change >= 0) {
    record.requested = TakeRequestedBytes(record.address);
  } else {
    ForgetWorkspace(record.address);
    if (TakePendingFree(record.address)) AppendPending(record);
  }
  Append(record);
  RequestLayers();
}

void RecordOom(std::int64_t requested, std::size_t allocated, std::size_t reserved, Device device) {
  const ErrnoSaver errno_saver;
  if (!Active() && !Wake()) return;
  record::BlockOom record = {};
  record.commit = {static_cast<std::uint16_t>(record::Kind::kBlockOom), record::Layer::kAllocator, device.index, 0};
  record.requested = static_cast<std::uint64_t>(requested);
  record.allocated = allocated;
  record.reserved_total = reserved;
  record.scope = CurrentScope();
  Append(record);
  RequestNames();
}

constinit Original<ReportMemory> g_report_memory{LEDGER_REPORT_MEMORY};
constinit Original<ReportMemory> g_report_memory_signed{LEDGER_REPORT_MEMORY_SIGNED};
constinit Original<ReportOom> g_report_oom{LEDGER_REPORT_OOM};
constinit Original<ReportOom> g_report_oom_signed{LEDGER_REPORT_OOM_SIGNED};

}  // namespace

extern "C" {
#define LEDGER_EXPORT_AS(name) __asm__(name) __attribute__((visibility("default")))
ReportMemory LedgerReportMemory LEDGER_EXPORT_AS(LEDGER_REPORT_MEMORY);
ReportMemory LedgerReportMemorySigned LEDGER_EXPORT_AS(LEDGER_REPORT_MEMORY_SIGNED);
ReportOom LedgerReportOom LEDGER_EXPORT_AS(LEDGER_REPORT_OOM);
ReportOom LedgerReportOomSigned LEDGER_EXPORT_AS(LEDGER_REPORT_OOM_SIGNED);

void LedgerReportMemory(void* address, std::int64_t change, std::size_t allocated, std::size_t reserved,
                        Device device) {
  if (device.type == kCuda) RecordBlock(address, change, allocated, reserved, device);
  g_report_memory(__builtin_return_address(0), LedgerReportMemory, address, change, allocated, reserved, device);
}

void LedgerReportMemorySigned(void* address, std::int64_t change, std::size_t allocated, std::size_t reserved,
                              Device device) {
  if (device.type == kCuda) RecordBlock(address, change, allocated, reserved, device);
  g_report_memory_signed(__builtin_return_address(0), LedgerReportMemorySigned, address, change, allocated, reserved,
                         device);
}

void LedgerReportOom(std::int64_t requested, std::size_t allocated, std::size_t reserved, Device device) {
  if (device.type == kCuda) RecordOom(requested, allocated, reserved, device);
  g_report_oom(__builtin_return_address(0), LedgerReportOom, requested, allocated, reserved, device);
}

void LedgerReportOomSigned(std::int64_t requested, std::size_t allocated, std::size_t reserved, Device device) {
  if (device.type == kCuda) RecordOom(requested, allocated, reserved, device);
  g_report_oom_signed(__builtin_return_address(0), LedgerReportOomSigned, requested, allocated, reserved, device);
}
}  // extern "C"

}  // namespace ledger
