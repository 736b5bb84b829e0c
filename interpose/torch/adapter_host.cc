#include "interpose/torch/adapter_host.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "interpose/core/collective_source.h"
#include "interpose/core/definitions.h"
#include "interpose/core/line.h"
#include "interpose/core/options.h"
#include "interpose/core/real_dlsym.h"
#include "interpose/core/recorder.h"
#include "interpose/core/thread_state.h"
#include "interpose/torch/agent_natives.h"
#include "interpose/torch/profiler_ranges.h"
#include "interpose/torch/scope_frames.h"

namespace ledger {
namespace {

using record::Kind;
using record::Layer;

constexpr std::string_view kSetting = "layer.adapter";

constinit std::atomic<const Adapter*> g_adapter{nullptr};

bool Recording() { return Active(); }

void PushOp(const void* identity, std::uint8_t flags, const char* name, std::size_t name_bytes) {
  PushFrame(FrameInfo{identity, Layer::kOp, flags}, std::string_view(name, name_bytes));
}

FrameStack* EnterNamedRange(const void* identity, const char* name, std::size_t name_bytes) {
  return EnterRange(identity, std::string_view(name, name_bytes));
}

void LeaveNamedRange(FrameStack* stack, const void* identity, const char* name, std::size_t name_bytes) {
  LeaveRange(stack, identity, std::string_view(name, name_bytes));
}

void AppendAny(void* record) {
  record::Commit commit;
  memcpy(&commit, record, sizeof(commit));
  auto* const ticks = static_cast<std::uint8_t*>(record) + sizeof(commit);
  std::uint64_t now;
  memcpy(&now, ticks, sizeof(now));
  if (now == 0) {
    now = Ticks();
    memcpy(ticks, &now, sizeof(now));
  }
  AppendRaw(commit, record);
}

// One block is traced at a time on a thread, and reported before the next one.
void BlockRequested(std::uint64_t address, std::uint64_t bytes) {
  t_thread.traced_address = address;
  t_thread.traced_bytes = bytes;
}

constexpr std::uint64_t kFreeing = ~std::uint64_t{0};

void FreeRequested(std::uint64_t address) { BlockRequested(address, kFreeing); }

void FreeCompleted(std::int8_t device, std::uint64_t address, std::uint64_t bytes, std::uint64_t stream) {
  ThreadState& thread = t_thread;
  if (thread.traced_address == address && thread.traced_bytes == kFreeing) {
    thread.traced_address = 0;  // it never waited
    return;
  }
  if (!Active()) return;
  record::BlockDetail record = {};
  record.commit = {static_cast<std::uint16_t>(Kind::kBlockReusable), Layer::kAllocator, device, 0};
  record.address = address;
  record.requested = bytes;
  record.stream = stream;
  record.scope = CurrentScope();
  Append(record);
}

void NoteSettingText(const char* key, const char* value) { NoteSetting(key, value); }
std::uint32_t Text(const char* text, std::size_t bytes) { return InternText(std::string_view(text, bytes)); }

constinit AdapterHost g_host = {
    .steps_with_ops = 0,
    .recording = Recording,
    .push_op = PushOp,
    .pop = PopFrame,
    .enter_range = EnterNamedRange,
    .leave_range = LeaveNamedRange,
    .place = PlaceScope,
    .current_scope = CurrentScope,
    .append = AppendAny,
    .block_requested = BlockRequested,
    .free_requested = FreeRequested,
    .free_completed = FreeCompleted,
    .note_setting = NoteSettingText,
    .text = Text,
    .context_made = TellContext,
    .wrapper_saved = TellSavedWrapper,
};

using Path = Line<kMaxPathBytes>;

void PathIn(std::string_view root, std::string_view version, Path& path) {
  path.Clear();
  path << root << "/adapter/" << version << "/libledger_torch.so";
}

// Beside this library first, then where `gpuledger adapter build` puts it when it may not write there.
bool FindAdapter(std::string_view version, Path& path) {
  PathIn(LibraryDirectory(), version, path);
  if (access(path.c_str(), R_OK) == 0) return true;
  Line<kMaxPathBytes> cache;
  if (const char* const directory = getenv("XDG_CACHE_HOME"); directory != nullptr && directory[0] != '\0') {
    cache << directory;
  } else if (const char* const home = getenv("HOME"); home != nullptr) {
    cache << home << "/.cache";
  }
  cache << "/gpuledger";
  PathIn(cache.view(), version, path);
  return access(path.c_str(), R_OK) == 0;
}

// Returns why it is not there, or an empty text.
const char* Attach(const Path& path, std::string_view version) {
  // Never closed: the framework keeps pointers into it.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    return error != nullptr ? error : "it cannot be loaded";
  }
  const DlsymFunction find = RealDlsym();
  const auto* const adapter = static_cast<const Adapter*>(find == nullptr ? nullptr : find(library, kAdapterSymbol));
  if (adapter == nullptr) return "it is no adapter";
  if (adapter->interface != kAdapterInterface) return "it was built for another version of libledger.so";
  if (version != adapter->built_for) return "it was built for another version of the framework";
  g_host.steps_with_ops = CurrentOptions().steps_with_ops;
  if (const char* const reason = adapter->attach(&g_host); reason != nullptr) return reason;
  SetNodeFinder(adapter->current_node);
  SetCollectiveSource({adapter->collective_name, adapter->process_group, adapter->process_group_named});
  g_adapter.store(adapter, std::memory_order_release);
  return "";
}

}  // namespace

const Adapter* AttachedAdapter() { return g_adapter.load(std::memory_order_acquire); }

void LoadAdapter(std::string_view framework_version) {
  Path path;
  if (!FindAdapter(framework_version, path)) {
    Line<512> value;
    value << "none for torch " << framework_version << " (make one: gpuledger adapter build)";
    NoteSetting(kSetting, value.view());
    return;
  }
  SetScopeRefiner(RefineScope);
  const std::string_view reason = Attach(path, framework_version);
  if (reason.empty()) {
    NoteSetting(kSetting, "on");
    return;
  }
  Line<1024> value;
  value << "failed: " << reason << " (make it anew: gpuledger adapter build)";
  NoteSetting(kSetting, value.view());
}

std::uint64_t TakeRequestedBytes(std::uint64_t address) {
  ThreadState& thread = t_thread;
  if (thread.traced_address != address || thread.traced_bytes == kFreeing) return 0;
  thread.traced_address = 0;
  return thread.traced_bytes;
}

bool TakePendingFree(std::uint64_t address) {
  ThreadState& thread = t_thread;
  if (thread.traced_address != address || thread.traced_bytes != kFreeing) return false;
  thread.traced_address = 0;
  return true;
}

std::string_view LibraryDirectory() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&FindAdapter), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string_view path(info.dli_fname);
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view(".") : path.substr(0, slash);
}

}  // namespace ledger
