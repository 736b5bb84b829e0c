#include "interpose/torch/scope_frames.h"

#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <type_traits>

#include "interpose/core/definitions.h"
#include "interpose/core/recorder.h"
#include "interpose/core/thread_state.h"
#include "interpose/record/spin_lock.h"

namespace ledger {
namespace {

constexpr std::uint32_t kMaxFrames = 500;

struct Frame {
  std::atomic<const void*> identity;  // null: it ended on another thread
  const char* name;                   // null: `text` is there already
  std::uint32_t name_bytes;
  std::uint32_t text;
  std::uint32_t scope;  // valid below FrameStack::resolved
  std::uint32_t origin;
  record::Layer source;
  std::uint8_t flags;
  bool is_node;
};

}  // namespace

// What was refined last: in most cases the next record comes from the same op of the same node.
struct Refined {
  const void* node;  // null: in none
  std::uint32_t text;
  std::uint32_t origin;
  std::uint32_t ranges;
  std::uint32_t scope;
  bool holds;  // nothing was entered or left since
};

struct FrameStack {
  Refined refined;
  std::uint32_t depth;
  std::uint32_t resolved;  // this many frames have their scope ...
  std::uint32_t ranges;    // ... below these ranges
  std::uint32_t modules;   // depth just above the innermost module; 0: none
  std::uint32_t dropped;   // frames that there was no room for
  FrameStack* next;        // of the unused ones
  Frame frames[kMaxFrames];
};

namespace {

constinit std::atomic<std::uint32_t> g_waiting_scope{0};
constinit std::atomic<bool> g_without_ranges{false};
constinit std::atomic<NodeFinder> g_find_node{nullptr};
constinit SpinLock g_lock;  // guards the list of unused stacks, and the key
constinit FrameStack* g_unused = nullptr;
constinit pthread_key_t g_key = 0;
constinit bool g_has_key = false;

void Reuse(void* memory) {
  auto* const stack = static_cast<FrameStack*>(memory);
  t_thread.frames = nullptr;
  if (!g_lock.Acquire()) return;  // one stack is lost
  stack->next = g_unused;
  g_unused = stack;
  g_lock.Release();
}

[[gnu::cold, gnu::noinline]] FrameStack* NewStack() {
  const ErrnoSaver errno_saver;
  if (!g_lock.Acquire()) return nullptr;
  if (!g_has_key) g_has_key = pthread_key_create(&g_key, Reuse) == 0;
  FrameStack* stack = g_unused;
  if (stack != nullptr) g_unused = stack->next;
  g_lock.Release();
  if (stack == nullptr) {
    void* const memory =
        mmap(nullptr, sizeof(FrameStack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      Count(record::Loss::kInternal);
      return nullptr;
    }
    stack = static_cast<FrameStack*>(memory);
  }
  stack->depth = stack->resolved = stack->ranges = stack->modules = stack->dropped = 0;
  stack->refined = {};
  if (g_has_key) pthread_setspecific(g_key, stack);
  t_thread.frames = stack;
  return stack;
}

std::uint32_t TextOfFrame(Frame& frame) {
  if (frame.name != nullptr) {
    frame.text = InternAlways(std::string_view(frame.name, frame.name_bytes));
    frame.name = nullptr;
  }
  return frame.text;
}

// What the path is above `count` frames, all of them resolved.
std::uint32_t ScopeAbove(const FrameStack& stack, std::uint32_t count) {
  return count == 0 ? stack.ranges : stack.frames[count - 1].scope;
}

std::uint32_t ResolveTo(FrameStack& stack, std::uint32_t ranges, std::uint32_t depth) {
  if (stack.ranges != ranges) {
    stack.ranges = ranges;
    stack.resolved = 0;
  }
  for (std::uint32_t at = stack.resolved; at < depth; ++at) {
    Frame& frame = stack.frames[at];
    if (frame.identity.load(std::memory_order_relaxed) == nullptr) {
      frame.scope = ScopeAbove(stack, at);
      continue;
    }
    const ScopeKind kind = {frame.source, frame.flags, frame.origin};
    frame.scope = ScopeUnder(ScopeAbove(stack, at), kind, TextOfFrame(frame));
  }
  if (stack.resolved < depth) stack.resolved = depth;
  return ScopeAbove(stack, depth);
}

void Truncate(FrameStack& stack, std::uint32_t depth) {
  stack.refined.holds = false;
  stack.depth = depth;
  if (stack.resolved > depth) stack.resolved = depth;
  while (stack.modules > depth) {
    do {
      --stack.modules;
    } while (stack.modules > 0 && (stack.frames[stack.modules - 1].flags & record::kScopeModule) == 0);
  }
}

// Takes away innermost frames that ended on another thread.
void DropEnded(FrameStack& stack) {
  std::uint32_t depth = stack.depth;
  while (depth > 0 && stack.frames[depth - 1].identity.load(std::memory_order_relaxed) == nullptr) --depth;
  if (depth != stack.depth) Truncate(stack, depth);
}

// A new innermost frame; null: there is no room.
Frame* Add(FrameStack& stack, const void* identity, record::Layer source, std::uint8_t flags) {
  const std::uint32_t depth = stack.depth;
  if (depth == kMaxFrames) [[unlikely]] {
    if (stack.dropped++ == 0) Count(record::Loss::kRangeDepth);
    return nullptr;
  }
  stack.refined.holds = false;
  Frame& frame = stack.frames[depth];
  frame.identity.store(identity, std::memory_order_relaxed);
  frame.origin = 0;
  frame.source = source;
  frame.is_node = false;
  // What runs inside recomputed code is recomputed; a backward node inside it is not.
  const std::uint8_t inherited =
      depth > 0 && (flags & record::kScopeBackward) == 0 ? stack.frames[depth - 1].flags & record::kScopeRecompute : 0;
  frame.flags = static_cast<std::uint8_t>(flags | inherited);
  stack.depth = depth + 1;
  if ((flags & record::kScopeModule) != 0) stack.modules = depth + 1;
  return &frame;
}

// The innermost node among the frames; null: none.
const Frame* InnermostNode(const FrameStack& stack) {
  for (std::uint32_t at = stack.depth; at > 0; --at) {
    if (stack.frames[at - 1].is_node) return &stack.frames[at - 1];
  }
  return nullptr;
}

// An odd address: a node may be gone, and its address be that of something else by now.
const void* IdentityOf(const NodeInfo& node) {
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(node.node) | 1);
}

bool IsFrameOf(const Frame& frame, const NodeInfo& node) {
  return frame.identity.load(std::memory_order_relaxed) == IdentityOf(node) && frame.text == node.text &&
         frame.origin == node.origin;
}

// Makes the frames agree with the backward node that the thread is inside of, null for none. An innermost frame of
// another node has ended. A node with frames on top of it has not, for they were entered inside it: then this one runs
// inside that one.
void TakeNode(FrameStack& stack, const NodeInfo* node) {
  DropEnded(stack);
  const std::uint32_t depth = stack.depth;
  if (depth > 0 && stack.frames[depth - 1].is_node) {
    if (node != nullptr && IsFrameOf(stack.frames[depth - 1], *node)) return;
    Truncate(stack, depth - 1);
  }
  if (node == nullptr) return;
  const Frame* const innermost = InnermostNode(stack);
  if (innermost != nullptr && IsFrameOf(*innermost, *node)) return;
  Frame* const frame = Add(stack, IdentityOf(*node), record::Layer::kOp, record::kScopeBackward);
  if (frame == nullptr) return;
  frame->is_node = true;
  frame->origin = node->origin;
  frame->name = nullptr;
  frame->text = node->text;
}

// False: the thread is inside of no node.
bool FindNode(NodeInfo* node) {
  const NodeFinder find = g_find_node.load(std::memory_order_acquire);
  return find != nullptr && find(node);
}

Frame* Enter(const FrameInfo& info) {
  NodeInfo node;
  const bool inside = FindNode(&node);
  FrameStack* const stack = t_thread.frames != nullptr ? t_thread.frames : NewStack();
  if (stack == nullptr) return nullptr;
  TakeNode(*stack, inside ? &node : nullptr);
  return Add(*stack, info.identity, info.source, info.flags);
}

bool StillHolds(const FrameStack& stack, std::uint32_t ranges, const NodeInfo& node) {
  const Refined& refined = stack.refined;
  return refined.holds && refined.ranges == ranges && refined.node == node.node && refined.text == node.text &&
         refined.origin == node.origin &&
         // The innermost frame may have ended on another thread.
         (stack.depth == 0 || stack.frames[stack.depth - 1].identity.load(std::memory_order_relaxed) != nullptr);
}

// Ranges with ever new names ("step 17") would multiply the paths of ops without end. Before the room for scopes is
// gone, they are left out of those paths; their own records in the ledger still say where they began and ended.
std::uint32_t OwnOrWaitingRanges(std::uint32_t ranges) {
  if (ScopesAreScarce()) [[unlikely]] {
    if (!g_without_ranges.exchange(true, std::memory_order_relaxed)) NoteSetting("layer.scopes", "ops without ranges");
    return 0;
  }
  return ranges != 0 ? ranges : g_waiting_scope.load(std::memory_order_relaxed);
}

}  // namespace

void PushFrame(const FrameInfo& info, std::string_view name) {
  Frame* const frame = Enter(info);
  if (frame == nullptr) return;
  frame->name = name.data();
  frame->name_bytes = static_cast<std::uint32_t>(name.size());
}

FrameStack* PushFrame(const FrameInfo& info, std::uint32_t text) {
  Frame* const frame = Enter(info);
  if (frame == nullptr) return nullptr;
  frame->name = nullptr;
  frame->text = text;
  return t_thread.frames;
}

void PopFrame(const void* identity) {
  FrameStack* const stack = t_thread.frames;
  if (stack == nullptr) return;
  for (std::uint32_t at = stack->depth; at > 0; --at) {
    if (stack->frames[at - 1].identity.load(std::memory_order_relaxed) == identity) {
      Truncate(*stack, at - 1);
      return;
    }
  }
}

void EndFrame(FrameStack* stack, const void* identity) {
  if (stack == t_thread.frames) {
    PopFrame(identity);
    return;
  }
  for (Frame& frame : stack->frames) {
    const void* expected = identity;
    if (frame.identity.compare_exchange_strong(expected, nullptr, std::memory_order_relaxed)) return;
  }
}

bool InsideModule() { return t_thread.frames != nullptr && t_thread.frames->modules > 0; }

std::uint32_t PlaceScope() {
  const std::uint32_t ranges = OwnOrWaitingRanges(RangeScope());
  FrameStack* const stack = t_thread.frames;
  return stack == nullptr || stack->modules == 0 ? ranges : ResolveTo(*stack, ranges, stack->modules);
}

std::uint32_t RefineScope(std::uint32_t ranges) {
  ranges = OwnOrWaitingRanges(ranges);
  NodeInfo node = {};
  const bool inside = FindNode(&node);
  FrameStack* stack = t_thread.frames;
  if (stack == nullptr) [[unlikely]] {
    if (inside) stack = NewStack();
    if (stack == nullptr) return ranges;
  }
  if (StillHolds(*stack, ranges, node)) return stack->refined.scope;
  TakeNode(*stack, inside ? &node : nullptr);
  const std::uint32_t scope = stack->depth == 0 ? ranges : ResolveTo(*stack, ranges, stack->depth);
  stack->refined = {node.node, node.text, node.origin, ranges, scope, true};
  return scope;
}

void SetNodeFinder(NodeFinder finder) { g_find_node.store(finder, std::memory_order_release); }

void SetWaitingScope(std::uint32_t scope) { g_waiting_scope.store(scope, std::memory_order_relaxed); }

}  // namespace ledger
