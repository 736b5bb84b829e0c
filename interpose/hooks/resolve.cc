#include "interpose/hooks/resolve.h"

#include <dlfcn.h>
#include <string.h>

#include <atomic>
#include <span>
#include <string_view>

#include "interpose/core/definitions.h"
#include "interpose/core/real_dlsym.h"
#include "interpose/core/recorder.h"

// The linker's own marks: the first byte of this library's image, and the end of its code.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start;
extern "C" [[gnu::visibility("hidden")]] const char etext;

namespace ledger::hooks {

constexpr bool IsPerThread(std::string_view symbol) { return symbol.ends_with("_ptsz"); }

const EntryInfo kEntries[kEntryCount] = {
#define LEDGER_DRIVER(symbol, name, since, hook, arity, types) \
  {#symbol, name, since, Library::kDriver, record::Layer::kDriver, IsPerThread(#symbol)},
#define LEDGER_RUNTIME(symbol, hook, arity, types) \
  {#symbol, nullptr, 0, Library::kRuntime, record::Layer::kRuntime, IsPerThread(#symbol)},
#define LEDGER_CUBLAS(symbol, hook, arity, types) \
  {#symbol, nullptr, 0, Library::kCublas, record::Layer::kRuntime, false},
#include "interpose/hooks/entry_points.inc"
#undef LEDGER_DRIVER
#undef LEDGER_RUNTIME
#undef LEDGER_CUBLAS
};

namespace {

constexpr const char* kDriverLibrary = "libcuda.so.1";

// The libraries whose functions a program may have got hold of, newest first.
std::span<const char* const> FilesOf(Library library) {
  static constexpr const char* kDriver[] = {kDriverLibrary};
  static constexpr const char* kRuntime[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
  static constexpr const char* kCublas[] = {"libcublas.so.13",   "libcublas.so.12",   "libcublas.so.11",
                                            "libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"};
  switch (library) {
    case Library::kDriver:
      return kDriver;
    case Library::kRuntime:
      return kRuntime;
    case Library::kCublas:
      return kCublas;
  }
  return {};
}

constinit std::atomic<void*> g_variants[kEntryCount][kVariants] = {};
constinit std::atomic<void*> g_exported[kEntryCount] = {};  // by libcuda

// By symbol: {page of the caller's code, entry} → real function. Filled once per pair; entries never change.
struct Binding {
  std::atomic<std::uint64_t> key;
  std::atomic<void*> real;
};
constexpr std::uint32_t kBindingsLog2 = 12;
constexpr std::uint32_t kProbes = 32;
constexpr std::uint32_t kPageShift = 12;
constexpr std::uint32_t kEntryBits = 10;
static_assert(kEntryCount < (1u << kEntryBits));
constinit Binding g_bindings[1u << kBindingsLog2] = {};

std::uint64_t BindingKey(Entry entry, const void* caller) {
  // Plus one: a key of zero is a free place.
  return (reinterpret_cast<std::uintptr_t>(caller) >> kPageShift) << kEntryBits | (Index(entry) + 1);
}

std::uint32_t BindingStart(std::uint64_t key) {
  return static_cast<std::uint32_t>((key * 0x9E3779B97F4A7C15u) >> (64 - kBindingsLog2));
}

// What a look-up through the library that contains `caller` finds: its own scope, as the loader would search it for a
// library that was opened on its own (RTLD_LOCAL).
void* LookThroughCaller(const char* symbol, const void* caller) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  return SymbolOfLoaded(info.dli_fname, symbol);
}

void* LookBehindUs(const char* symbol) {
  const DlsymFunction real = RealDlsym();
  void* const found = real == nullptr ? nullptr : real(RTLD_NEXT, symbol);
  if (found == nullptr) dlerror();
  return found;
}

void* UnlessOurs(void* found) { return IsOurs(found) ? nullptr : found; }

void* FindReal(Entry entry, const void* caller) {
  const EntryInfo& info = InfoOf(entry);
  if (void* const found = UnlessOurs(LookThroughCaller(info.symbol, caller)); found != nullptr) return found;
  if (void* const found = UnlessOurs(LookBehindUs(info.symbol)); found != nullptr) return found;
  for (const char* const file : FilesOf(info.library)) {
    if (void* const found = UnlessOurs(SymbolOfLoaded(file, info.symbol)); found != nullptr) return found;
  }
  return nullptr;
}

[[gnu::cold, gnu::noinline]] void* Bind(Entry entry, const void* caller) {
  ErrnoSaver errno_saver;
  void* const real = FindReal(entry, caller);
  if (real == nullptr) {
    Count(record::Loss::kUnresolved);
    return nullptr;
  }
  const std::uint64_t key = BindingKey(entry, caller);
  const std::uint32_t start = BindingStart(key);
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    Binding& binding = g_bindings[(start + probe) % (1u << kBindingsLog2)];
    std::uint64_t expected = 0;
    if (binding.key.compare_exchange_strong(expected, key, std::memory_order_relaxed)) {
      binding.real.store(real, std::memory_order_release);
      break;
    }
    if (expected == key) break;
  }
  return real;
}

// The driver's exported function of a row; cached once found.
void* Exported(std::size_t row) {
  void* exported = g_exported[row].load(std::memory_order_relaxed);
  if (exported == nullptr) {
    exported = SymbolOfLoaded(kDriverLibrary, kEntries[row].symbol);
    g_exported[row].store(exported, std::memory_order_relaxed);
  }
  return exported;
}

// A driver under another name can't be asked what it exports.
bool DriverIsKnown() {
  static constinit std::atomic<bool> known{false};
  if (!known.load(std::memory_order_relaxed)) {
    known.store(SymbolOfLoaded(kDriverLibrary, "cuDriverGetVersion") != nullptr, std::memory_order_relaxed);
  }
  return known.load(std::memory_order_relaxed);
}

}  // namespace

void* RealOfVariant(Entry entry, int variant) {
  return g_variants[Index(entry)][variant].load(std::memory_order_relaxed);
}

void* Wrap(Entry entry, void* real) {
  if (real == nullptr || IsOurs(real)) return real;
  for (int variant = 0; variant < kVariants; ++variant) {
    std::atomic<void*>& slot = g_variants[Index(entry)][variant];
    void* known = slot.load(std::memory_order_acquire);
    if (known == nullptr && slot.compare_exchange_strong(known, real, std::memory_order_acq_rel)) known = real;
    if (known == real) return WrapperOf(entry, variant);
  }
  Count(record::Loss::kTooManyVariants);
  return real;
}

void* RealBySymbol(Entry entry, const void* caller) {
  const std::uint64_t key = BindingKey(entry, caller);
  const std::uint32_t start = BindingStart(key);
  for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
    const Binding& binding = g_bindings[(start + probe) % (1u << kBindingsLog2)];
    const std::uint64_t found = binding.key.load(std::memory_order_relaxed);
    if (found == 0) break;
    if (found != key) continue;
    if (void* const real = binding.real.load(std::memory_order_acquire); real != nullptr) return real;
    break;
  }
  return Bind(entry, caller);
}

bool RealInScope(Entry entry, const void* caller) {
  const char* const symbol = InfoOf(entry).symbol;
  return UnlessOurs(LookBehindUs(symbol)) != nullptr || UnlessOurs(LookThroughCaller(symbol, caller)) != nullptr;
}

bool FindSymbol(const char* symbol, Entry& entry) {
  for (std::size_t row = 0; row < kEntryCount; ++row) {
    if (strcmp(kEntries[row].symbol, symbol) != 0) continue;
    entry = static_cast<Entry>(row);
    return true;
  }
  return false;
}

// The driver decides what it answers; we only have to know which calling convention it is. Where the answer is a
// function that libcuda exports, that settles it. Otherwise it is the newest one that is not newer than the caller's
// version and that this driver has.
bool FindAnswer(const char* name, int version, unsigned long long flags, const void* real, Entry& entry) {
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const EntryInfo* best = nullptr;
  for (std::size_t row = 0; row < kEntryCount; ++row) {
    const EntryInfo& info = kEntries[row];
    if (info.name == nullptr || strcmp(info.name, name) != 0) continue;
    const void* const exported = Exported(row);
    if (exported != nullptr && exported == real) {
      entry = static_cast<Entry>(row);
      return true;
    }
    if (info.since > version || (exported == nullptr && DriverIsKnown())) continue;
    // Of a name that has both, the caller's kind of default stream; most have one kind only.
    const bool better_kind = best != nullptr && info.per_thread == per_thread && best->per_thread != per_thread;
    const bool worse_kind = best != nullptr && info.per_thread != per_thread && best->per_thread == per_thread;
    if (best == nullptr || better_kind || (!worse_kind && info.since > best->since)) best = &info;
  }
  if (best == nullptr) return false;
  entry = static_cast<Entry>(best - kEntries);
  return true;
}

bool IsOurs(const void* code) {
  const auto address = reinterpret_cast<std::uintptr_t>(code);
  return address >= reinterpret_cast<std::uintptr_t>(&__ehdr_start) &&
         address < reinterpret_cast<std::uintptr_t>(&etext);
}

bool IsVendorTool(const void* caller) {
  constexpr std::string_view kTools[] = {
      "libcupti.so",    "libnvperf_",       "libToolsInjection", "libsanitizer",     "libcuinj",
      "libInterceptor", "libnvidia-nsight", "libpcsamplingutil", "libcheckpoint.so", "libcuda-injection"};
  const std::string_view name = TextOf(OwnerOf(caller));
  for (const std::string_view tool : kTools) {
    if (name.starts_with(tool)) return true;
  }
  return false;
}

}  // namespace ledger::hooks
