// Nodes of the graph: the place where each was made, and which one a thread is inside of in backward.
//
// A node has a number, which is unique among those that a thread makes. The place of the forward and the name are kept
// by it, so that a block allocated in backward, which runs on another thread, can say which module it belongs to.
//
// The framework could report each node as it runs, but makes its name anew every time, looks its observers up, and is
// slowed down more by this than by everything else that is recorded. It is asked instead which node runs, where
// something is recorded.
#include <c10/util/Type.h>
#if __has_include(<torch/csrc/autograd/node.h>)
#include <torch/csrc/autograd/node.h>
#else
#include <torch/csrc/autograd/function.h>
#endif

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <typeinfo>

#include "interpose/torch/adapter/adapter.h"

namespace ledger::adapter {
namespace {

using torch::autograd::Node;

// What is kept of a node.
struct Origin {
  std::uint32_t place;
  std::uint32_t name;
};

// The nodes of one thread by number: a ring that holds the latest ones. Other threads read it.
class OriginRing {
 public:
  void Set(std::int64_t sequence, const Origin& origin) {
    Entry& entry = entries_[Slot(sequence)];
    entry.name.store(origin.name, std::memory_order_relaxed);
    entry.tag_and_place.store(Tag(sequence) | origin.place, std::memory_order_release);
  }
  // Zeros where the node is not there (any more).
  Origin Get(std::int64_t sequence) const {
    const Entry& entry = entries_[Slot(sequence)];
    const std::uint64_t tag_and_place = entry.tag_and_place.load(std::memory_order_acquire);
    if ((tag_and_place & kTagMask) != Tag(sequence)) return {};
    return {static_cast<std::uint32_t>(tag_and_place), entry.name.load(std::memory_order_relaxed)};
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> tag_and_place;
    std::atomic<std::uint32_t> name;
  };
  static constexpr std::uint64_t kTagMask = ~std::uint64_t{0xFFFFFFFF};
  static constexpr std::size_t kEntries = std::size_t{1} << 16;
  static std::size_t Slot(std::int64_t sequence) { return static_cast<std::size_t>(sequence) % kEntries; }
  static std::uint64_t Tag(std::int64_t sequence) { return static_cast<std::uint64_t>(sequence + 1) << 32; }

  std::array<Entry, kEntries> entries_;
};

// By the framework's own small thread numbers. Never freed: backward may come after its forward's thread has ended.
constexpr std::size_t kMaxThreads = 4096;
std::array<std::atomic<OriginRing*>, kMaxThreads> g_origins;

OriginRing* OriginsOf(std::uint64_t thread) {
  return thread < kMaxThreads ? g_origins[thread].load(std::memory_order_acquire) : nullptr;
}

// Only the thread itself makes its ring.
OriginRing* OriginsOfThisThread() {
  thread_local OriginRing* t_origins = nullptr;
  if (t_origins != nullptr) return t_origins;
  const std::uint64_t thread = at::RecordFunction::currentThreadId();
  if (thread >= kMaxThreads) return nullptr;
  t_origins = OriginsOf(thread);
  if (t_origins == nullptr) {
    // Zero pages until they are used.
    t_origins = static_cast<OriginRing*>(std::calloc(1, sizeof(OriginRing)));
    g_origins[thread].store(t_origins, std::memory_order_release);
  }
  return t_origins;
}

// Names of kinds of nodes: making one takes microseconds. There are some hundred kinds; where they do not fit, names
// are made anew.
class KindNames {
 public:
  // 0: not there.
  std::uint32_t Find(const std::type_info& type) const {
    for (std::size_t at = Slot(type), tries = 0; tries < kTries; ++tries, at = (at + 1) % kEntries) {
      const std::type_info* const there = entries_[at].type.load(std::memory_order_acquire);
      if (there == &type) return entries_[at].name.load(std::memory_order_acquire);
      if (there == nullptr) return 0;
    }
    return 0;
  }
  void Add(const std::type_info& type, std::uint32_t name) {
    for (std::size_t at = Slot(type), tries = 0; tries < kTries; ++tries, at = (at + 1) % kEntries) {
      const std::type_info* there = nullptr;
      if (!entries_[at].type.compare_exchange_strong(there, &type) && there != &type) continue;
      entries_[at].name.store(name, std::memory_order_release);
      return;
    }
  }

 private:
  static constexpr std::size_t kEntries = 2048;
  static constexpr std::size_t kTries = 16;
  static std::size_t Slot(const std::type_info& type) {
    return (reinterpret_cast<std::uintptr_t>(&type) * 0x9E3779B97F4A7C15u >> 32) % kEntries;
  }
  struct Entry {
    std::atomic<const std::type_info*> type{nullptr};
    std::atomic<std::uint32_t> name{0};
  };
  std::array<Entry, kEntries> entries_;
};
KindNames g_names;

std::uint32_t Text(std::string_view name) { return Host().text(name.data(), name.size()); }

// A node of a function that is written in Python. Its class is not in a header that does without Python's own.
bool IsPythonNode(const std::type_info& type) {
  constexpr std::string_view kPythonNode = "N5torch8autograd6PyNodeE";
  return type.name() == kPythonNode;
}

// The context object of such a node; null where the framework has no node that tells.
template <typename AnyNode>
void* ContextOf(const AnyNode& node) {
  if constexpr (requires { node.pyobj_slot()->load_pyobj(); }) {
    return node.pyobj_slot()->load_pyobj();
  } else {
    return nullptr;
  }
}

// A node of a function that is written in Python has the name of its Python class, and to get that takes the
// interpreter's lock: may it be taken?
enum class Interpreter : std::uint8_t { kMayBeLocked, kMustNotBeLocked };

std::uint32_t NewNameOf(const Node& node, Interpreter interpreter) {
  const std::type_info& type = typeid(node);
  if (IsPythonNode(type)) {
    return Text(interpreter == Interpreter::kMayBeLocked ? node.name() : c10::demangle(type.name()));
  }
  const std::uint32_t name = Text(node.name());
  if (name != 0) g_names.Add(type, name);
  return name;
}

}  // namespace

void RememberNode(const void* created) try {
  const auto& node = **static_cast<const c10::intrusive_ptr<Node>*>(created);
  const auto sequence = static_cast<std::int64_t>(node.sequence_nr());
  if (sequence < 0) return;  // gradient accumulators have no number of their own
  OriginRing* const origins = OriginsOfThisThread();
  const std::uint32_t known = g_names.Find(typeid(node));
  // The framework makes nodes of Python functions with the interpreter's lock in hand.
  const std::uint32_t name = known != 0 ? known : NewNameOf(node, Interpreter::kMayBeLocked);
  if (origins != nullptr) origins->Set(sequence, {Host().place(), name});
  // Its forward has run: what it keeps in its context is there.
  if (known == 0 && IsPythonNode(typeid(node))) Host().context_made(ContextOf(node));
} catch (...) {
  return;
}

bool CurrentNode(NodeInfo* info) try {
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr) return false;
  const auto sequence = static_cast<std::int64_t>(node->sequence_nr());
  const OriginRing* const origins = sequence < 0 ? nullptr : OriginsOf(node->thread_id());
  const Origin origin = origins == nullptr ? Origin{} : origins->Get(sequence);
  info->node = node.get();
  info->text = origin.name;
  if (info->text == 0) info->text = g_names.Find(typeid(*node));
  if (info->text == 0) info->text = NewNameOf(*node, Interpreter::kMustNotBeLocked);
  info->origin = origin.place;
  return true;
} catch (...) {
  return false;
}

}  // namespace ledger::adapter
