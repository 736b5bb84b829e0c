#include "interpose/hooks/nvtx_chain.h"

#include <dlfcn.h>
#include <time.h>

#include <atomic>
#include <iterator>

#include "interpose/core/recorder.h"
#include "interpose/hooks/nvtx_environment.h"

namespace ledger::nvtx {
namespace {

// The modules whose functions we share with the other tool come first; the rest are the other tool's alone.
constexpr NvtxCallbackModule kModules[] = {NVTX_CB_MODULE_CORE,   NVTX_CB_MODULE_CORE2,  NVTX_CB_MODULE_CUDA,
                                           NVTX_CB_MODULE_OPENCL, NVTX_CB_MODULE_CUDART, NVTX_CB_MODULE_SYNC};
constexpr std::size_t kModuleCount = std::size(kModules);
constexpr std::size_t kSharedModules = 2;
constexpr unsigned int kSlots = 32;  // more than any module has
static_assert(NVTX_CBID_CORE_SIZE <= kSlots && NVTX_CBID_CORE2_SIZE <= kSlots && NVTX_CBID_OPENCL_SIZE <= kSlots);

using Initialize = NvtxInitializeInjectionNvtxFunc_t;
using Slots = NvtxFunctionPointer[kModuleCount][kSlots];

// What the other tool puts into the clients. Written by the first client (clients start one at a time: see Turn), then
// only compared: the functions have no argument that would say which client calls.
constinit std::atomic<NvtxFunctionPointer> g_callbacks[kSharedModules][kSlots];
constinit std::atomic<bool> g_attached{false};

// The handle of the other tool's library; never closed. kAbsent: it could not be opened.
constinit std::atomic<void*> g_library{nullptr};
void* const kAbsent = reinterpret_cast<void*>(-1);

// Clients that start at the same time, on different threads, take turns. A tool's initialisation may use NVTX itself,
// so that the turn is also taken by the thread that has it. The wait is bounded: in a forked child, the thread that had
// the turn may not be there any more.
class Turn {
 public:
  Turn() {
    const std::uint32_t me = ThreadId();
    nested_ = g_owner.load(std::memory_order_acquire) == me;
    taken_ = nested_;
    constexpr int kWaits = 20'000;
    constexpr long kWaitNs = 100'000;  // 2 s in all
    for (int wait = 0; wait < kWaits && !taken_; ++wait) {
      std::uint32_t nobody = 0;
      taken_ = g_owner.compare_exchange_strong(nobody, me, std::memory_order_acq_rel);
      const timespec pause = {0, kWaitNs};
      if (!taken_) nanosleep(&pause, nullptr);
    }
  }
  ~Turn() {
    if (taken_ && !nested_) g_owner.store(0, std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool taken() const { return taken_; }

 private:
  static inline constinit std::atomic<std::uint32_t> g_owner{0};
  bool nested_;
  bool taken_;
};

void* OtherLibrary() {
  void* library = g_library.load(std::memory_order_acquire);
  if (library == nullptr) {
    const char* path = OtherToolsPath();
    library = path == nullptr ? nullptr : dlopen(path, RTLD_LAZY);
    if (library == nullptr) library = kAbsent;
    g_library.store(library, std::memory_order_release);
  }
  return library == kAbsent ? nullptr : library;
}

void Read(NvtxGetExportTableFunc_t get_export_table, Slots& slots) {
  for (std::size_t module = 0; module < kModuleCount; ++module) {
    const ModuleTable table = TableOf(get_export_table, kModules[module]);
    for (unsigned int id = 0; id < kSlots; ++id) {
      const bool present = table.slots != nullptr && id < table.size && table.slots[id] != nullptr;
      slots[module][id] = present ? *table.slots[id] : nullptr;
    }
  }
}

void Restore(NvtxGetExportTableFunc_t get_export_table, const Slots& slots) {
  for (std::size_t module = 0; module < kModuleCount; ++module) {
    const ModuleTable table = TableOf(get_export_table, kModules[module]);
    for (unsigned int id = 0; table.slots != nullptr && id < kSlots && id < table.size; ++id) {
      if (table.slots[id] != nullptr) *table.slots[id] = slots[module][id];
    }
  }
}

// A slot that a tool does not set holds a stub of the client, which would call us again: only what has changed counts.
OtherTool Adopt(const Slots& before, const Slots& after) {
  const bool first = !g_attached.load(std::memory_order_acquire);
  for (std::size_t module = 0; module < kSharedModules; ++module) {
    for (unsigned int id = 0; id < kSlots; ++id) {
      const bool set = after[module][id] != before[module][id];
      const NvtxFunctionPointer callback = set ? after[module][id] : nullptr;
      if (first) {
        g_callbacks[module][id].store(callback, std::memory_order_relaxed);
      } else if (g_callbacks[module][id].load(std::memory_order_relaxed) != callback) {
        Count(record::Loss::kTooManyVariants);
        return OtherTool::kCannotShare;
      }
    }
  }
  g_attached.store(true, std::memory_order_release);
  return OtherTool::kAttached;
}

}  // namespace

ModuleTable TableOf(NvtxGetExportTableFunc_t get_export_table, NvtxCallbackModule module) {
  ModuleTable table;
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks) ||
      callbacks->GetModuleFunctionTable == nullptr ||
      callbacks->GetModuleFunctionTable(module, &table.slots, &table.size) == 0) {
    return {};
  }
  return table;
}

OtherTool AttachOtherTool(const char* entry_point, NvtxGetExportTableFunc_t get_export_table) {
  const Turn turn;
  if (!turn.taken()) Count(record::Loss::kInternal);
  void* const library = turn.taken() ? OtherLibrary() : nullptr;
  if (library == nullptr) return OtherTool::kNone;
  const auto initialize = reinterpret_cast<Initialize>(dlsym(library, entry_point));
  if (initialize == nullptr) return OtherTool::kNone;
  Slots before;
  Slots after;
  Read(get_export_table, before);
  // A tool that fails may have set slots all the same; NVTX would drop them, and so do we.
  if (initialize(get_export_table) == 0) {
    Restore(get_export_table, before);
    return OtherTool::kNone;
  }
  Read(get_export_table, after);
  return Adopt(before, after);
}

int AttachOtherToolToExtension(void* module_info) {
  void* library = OtherLibrary();
  if (library == nullptr) return 0;
  const auto initialize = reinterpret_cast<int (*)(void*)>(dlsym(library, "InitializeInjectionNvtxExtension"));
  return initialize == nullptr ? 0 : initialize(module_info);
}

NvtxFunctionPointer OtherToolsCallback(NvtxCallbackModule module, std::uint32_t callback_id) {
  if (callback_id >= kSlots) return nullptr;
  const std::size_t row = module == NVTX_CB_MODULE_CORE2 ? 1 : 0;
  return g_callbacks[row][callback_id].load(std::memory_order_relaxed);
}

}  // namespace ledger::nvtx
