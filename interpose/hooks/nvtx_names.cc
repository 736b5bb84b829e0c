#include "interpose/hooks/nvtx_names.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "interpose/core/recorder.h"

namespace ledger::nvtx {
namespace {

constexpr std::size_t kRegionBytes = std::size_t{8} << 20;
constexpr std::size_t kMaxDomains = 64;
constexpr std::size_t kDomainAliases = 256;
constexpr std::size_t kStringAliases = std::size_t{1} << 14;

struct String {
  std::string_view text;
};

constinit const Domain g_default_domain{{}, 0, false};

// A bump allocator over one reserved region. Pages cost memory only once they are used.
class Region {
 public:
  template <typename T>
  T* New(std::size_t extra_bytes) {
    static_assert(alignof(T) <= 16);
    void* place = Take(sizeof(T) + extra_bytes);
    return place == nullptr ? nullptr : new (place) T{};
  }

  bool Contains(const void* address) const {
    const auto base = base_.load(std::memory_order_acquire);
    const auto value = reinterpret_cast<std::uintptr_t>(address);
    return base != 0 && value >= base && value < base + kRegionBytes && value % 16 == 0;
  }

 private:
  void* Take(std::size_t bytes) {
    const std::uintptr_t base = Base();
    const std::size_t rounded = (bytes + 15) & ~std::size_t{15};
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (base == 0 || rounded > kRegionBytes - used) return nullptr;
    } while (!used_.compare_exchange_weak(used, used + rounded, std::memory_order_relaxed));
    return reinterpret_cast<void*>(base + used);
  }

  std::uintptr_t Base() {
    std::uintptr_t base = base_.load(std::memory_order_acquire);
    if (base != 0) return base;
    void* fresh =
        mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) return 0;
    if (base_.compare_exchange_strong(base, reinterpret_cast<std::uintptr_t>(fresh), std::memory_order_acq_rel)) {
      return reinterpret_cast<std::uintptr_t>(fresh);
    }
    munmap(fresh, kRegionBytes);  // another thread was faster
    return base;
  }

  std::atomic<std::uintptr_t> base_{0};
  std::atomic<std::size_t> used_{0};
};

// A map from handles to what they stand for: open addressing, filled by compare-and-swap, nothing is ever removed. A
// key that comes again (a tool reuses the handle of a destroyed domain) gets the new meaning.
template <std::size_t kCapacity>
class AliasTable {
 public:
  bool Put(std::uint64_t key, const void* meaning) {
    for (std::size_t probe = 0; probe < kMaxProbes; ++probe) {
      Entry& entry = entries_[Slot(key, probe)];
      std::uint64_t seen = entry.key.load(std::memory_order_acquire);
      if (seen == 0 && entry.key.compare_exchange_strong(seen, key, std::memory_order_acq_rel)) seen = key;
      if (seen != key) continue;
      entry.meaning.store(meaning, std::memory_order_release);
      return true;
    }
    return false;
  }

  const void* Get(std::uint64_t key) const {
    for (std::size_t probe = 0; probe < kMaxProbes; ++probe) {
      const Entry& entry = entries_[Slot(key, probe)];
      const std::uint64_t seen = entry.key.load(std::memory_order_acquire);
      if (seen == key) return entry.meaning.load(std::memory_order_acquire);
      if (seen == 0) return nullptr;
    }
    return nullptr;
  }

 private:
  static_assert((kCapacity & (kCapacity - 1)) == 0);
  static constexpr std::size_t kMaxProbes = 64;
  static std::size_t Slot(std::uint64_t key, std::size_t probe) {
    return (static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 40) + probe) & (kCapacity - 1);
  }
  struct Entry {
    std::atomic<std::uint64_t> key{0};
    std::atomic<const void*> meaning{nullptr};
  };
  Entry entries_[kCapacity];
};

constinit Region g_region;
constinit std::atomic<const Domain*> g_domains[kMaxDomains];
constinit AliasTable<kDomainAliases> g_domain_aliases;
constinit AliasTable<kStringAliases> g_string_aliases;

std::uint64_t Key(const void* handle) { return reinterpret_cast<std::uintptr_t>(handle); }

// Tools may number the strings of each domain from 1, so that a handle means something only together with its domain.
std::uint64_t Key(nvtxDomainHandle_t domain, nvtxStringHandle_t string) {
  const std::uint64_t mixed = (Key(domain) + 1) * 0xd6e8feb86659fd93u + Key(string);
  return mixed == 0 ? 1 : mixed;
}

std::string_view AtMost(std::string_view text, std::size_t bytes) {
  return {text.data(), std::min(text.size(), bytes)};
}

char* CopyBehind(void* object, std::size_t object_bytes, std::string_view text) {
  char* copy = static_cast<char*>(object) + object_bytes;
  std::memcpy(copy, text.data(), text.size());
  return copy;
}

Domain* NewDomain(std::string_view name) {
  auto* domain = g_region.New<Domain>(name.size());
  if (domain == nullptr) return nullptr;
  domain->name = {CopyBehind(domain, sizeof(Domain), name), name.size()};
  domain->is_nccl = name == "NCCL";
  return domain;
}

}  // namespace

const Domain& DomainNamed(std::string_view name) {
  if (name.empty()) return g_default_domain;
  name = AtMost(name, record::kMaxTextBytes);
  Domain* fresh = nullptr;
  for (std::size_t i = 0; i < kMaxDomains; ++i) {
    const Domain* seen = g_domains[i].load(std::memory_order_acquire);
    if (seen == nullptr) {
      if (fresh == nullptr) fresh = NewDomain(name);
      if (fresh == nullptr) break;
      fresh->index = static_cast<std::uint32_t>(i + 1);
      if (g_domains[i].compare_exchange_strong(seen, fresh, std::memory_order_acq_rel)) return *fresh;
    }
    if (seen->name == name) return *seen;
  }
  Count(record::Loss::kTextTable);
  return g_default_domain;
}

const Domain& DomainOf(nvtxDomainHandle_t handle) {
  if (handle == nullptr) return g_default_domain;
  if (g_region.Contains(handle)) return *reinterpret_cast<const Domain*>(handle);
  const void* meaning = g_domain_aliases.Get(Key(handle));
  return meaning == nullptr ? g_default_domain : *static_cast<const Domain*>(meaning);
}

nvtxDomainHandle_t HandleOf(const Domain& domain) {
  if (domain.index == 0) return nullptr;
  return reinterpret_cast<nvtxDomainHandle_t>(const_cast<Domain*>(&domain));
}

nvtxStringHandle_t RegisterString(std::string_view text) {
  text = AtMost(text, record::kMaxTextBytes + 1);  // one byte too many, so that the cut shows
  auto* string = g_region.New<String>(text.size());
  if (string == nullptr) {
    Count(record::Loss::kTextTable);
    return nullptr;
  }
  string->text = {CopyBehind(string, sizeof(String), text), text.size()};
  return reinterpret_cast<nvtxStringHandle_t>(string);
}

std::string_view RegisteredString(nvtxDomainHandle_t domain, nvtxStringHandle_t handle) {
  if (handle == nullptr) return {};
  if (g_region.Contains(handle)) return reinterpret_cast<const String*>(handle)->text;
  const void* meaning = g_string_aliases.Get(Key(domain, handle));
  return meaning == nullptr ? std::string_view{} : static_cast<const String*>(meaning)->text;
}

bool IsOurHandle(const void* handle) { return g_region.Contains(handle); }

void AliasDomain(nvtxDomainHandle_t foreign, const Domain& domain) {
  if (foreign == nullptr) return;
  if (!g_domain_aliases.Put(Key(foreign), &domain)) Count(record::Loss::kTextTable);
}

void AliasString(nvtxDomainHandle_t domain, nvtxStringHandle_t foreign, nvtxStringHandle_t ours) {
  if (foreign == nullptr || ours == nullptr) return;
  if (!g_string_aliases.Put(Key(domain, foreign), ours)) Count(record::Loss::kTextTable);
}

}  // namespace ledger::nvtx
