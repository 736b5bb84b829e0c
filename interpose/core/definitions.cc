#include "interpose/core/definitions.h"

#include <algorithm>
#include <atomic>

#include "interpose/core/process.h"
#include "interpose/core/recorder.h"
#include "interpose/core/thread_state.h"
#include "interpose/record/spin_lock.h"
#include "interpose/record/text_table.h"

namespace ledger {
namespace {

using record::Kind;
using record::Layer;
using record::Loss;

// Deeper nesting than this is a runaway loop of pushes without pops.
constexpr std::uint16_t kMaxDepth = 512;

constinit TextTable g_texts;
constinit ScopeTable g_scopes;
constinit SpinLock g_lock;  // guards additions to both
constinit std::atomic<ScopeRefiner> g_refiner{nullptr};

void WriteText(std::uint32_t id, std::string_view text) {
  record::TextChunk chunk = {};
  chunk.commit.kind = static_cast<std::uint16_t>(Kind::kText);
  chunk.commit.device = record::kNoDevice;
  chunk.id = id;
  chunk.total_bytes = static_cast<std::uint16_t>(text.size());
  for (std::size_t begin = 0; begin < text.size(); begin += record::kTextChunkBytes) {
    const std::size_t bytes = std::min(record::kTextChunkBytes, text.size() - begin);
    std::memcpy(chunk.bytes, text.data() + begin, bytes);
    std::memset(chunk.bytes + bytes, 0, record::kTextChunkBytes - bytes);
    Append(chunk);
    ++chunk.chunk;
  }
}

void WriteScope(std::uint32_t id, const ScopeNode& node) {
  record::ScopeDefinition definition = {};
  definition.commit.kind = static_cast<std::uint16_t>(Kind::kScope);
  definition.commit.layer = node.source;
  definition.commit.device = record::kNoDevice;
  definition.id = id;
  definition.parent = node.parent;
  definition.name = node.name;
  definition.domain = node.domain;
  definition.origin = node.origin;
  definition.source = node.source;
  definition.flags = node.flags;
  Append(definition);
}

[[gnu::cold, gnu::noinline]] std::uint32_t AddText(std::string_view text, std::uint32_t hash) {
  if (!g_lock.Acquire()) {
    Count(Loss::kTextTable);
    return 0;
  }
  std::uint32_t id = g_texts.Find(text, hash);
  if (id == 0) {
    id = g_texts.Add(text);
    if (id == 0) {
      Count(Loss::kTextTable);
    } else {
      if (FileIsOpen()) WriteText(id, text);
      g_texts.Publish(id, hash);
    }
  }
  g_lock.Release();
  return id;
}

[[gnu::cold, gnu::noinline]] std::uint32_t AddScope(const ScopeNode& node, std::uint32_t hash) {
  if (!g_lock.Acquire()) {
    Count(Loss::kScopeTable);
    return 0;
  }
  std::uint32_t id = g_scopes.Find(node, hash);
  if (id == 0) {
    id = g_scopes.Add(node);
    if (id == 0) {
      Count(Loss::kScopeTable);
    } else {
      if (FileIsOpen()) WriteScope(id, node);
      g_scopes.Publish(id, hash);
    }
  }
  g_lock.Release();
  return id;
}

std::uint32_t FindOrAddScope(const ScopeNode& node) {
  const std::uint32_t hash = ScopeTable::Hash(node);
  const std::uint32_t id = g_scopes.Find(node, hash);
  return id != 0 ? id : AddScope(node, hash);
}

ScopeNode Below(std::uint32_t parent, Layer source, std::uint32_t domain, std::uint32_t name) {
  const auto depth = static_cast<std::uint16_t>(g_scopes.Node(parent).depth + 1);
  return ScopeNode{parent, name, domain, depth, source, 0};
}

void WriteRange(Kind kind, Layer source, std::uint32_t scope, std::uint64_t payload) {
  if (!Active()) return;
  const ScopeNode node = g_scopes.Node(scope);
  record::Range range = {};
  range.commit.kind = static_cast<std::uint16_t>(kind);
  range.commit.layer = source;
  range.commit.device = record::kNoDevice;
  range.scope = scope;
  range.text = node.name;
  range.domain = node.domain;
  range.payload = payload;
  Append(range);
}

// Takes `ended` out of the path that leads to `top`: the ranges that were opened inside it go on without it.
std::uint32_t PathWithout(std::uint32_t top, std::uint32_t ended) {
  std::uint32_t inside[kMaxDepth];
  std::uint32_t count = 0;
  for (std::uint32_t at = top; at != ended; at = g_scopes.Node(at).parent) inside[count++] = at;
  std::uint32_t path = g_scopes.Node(ended).parent;
  while (count > 0) {
    const ScopeNode node = g_scopes.Node(inside[--count]);
    const std::uint32_t next = FindOrAddScope(Below(path, node.source, node.domain, node.name));
    if (next == 0) break;  // counted; pops of the rest will be counted as unbalanced
    path = next;
  }
  return path;
}

}  // namespace

std::uint32_t InternAlways(std::string_view text) {
  char buffer[record::kMaxTextBytes];
  text = TextTable::Shorten(text, buffer);
  if (text.empty()) return 0;
  const std::uint32_t hash = TextTable::Hash(text);
  const std::uint32_t id = g_texts.Find(text, hash);
  return id != 0 ? id : AddText(text, hash);
}

std::uint32_t InternText(std::string_view text) { return FileIsOpen() ? InternAlways(text) : 0; }

std::string_view TextOf(std::uint32_t id) { return g_texts.Text(id); }

std::uint32_t RangeScope() { return t_thread.scope; }

std::uint32_t CurrentScope() {
  const ScopeRefiner refine = g_refiner.load(std::memory_order_acquire);
  return refine == nullptr ? t_thread.scope : refine(t_thread.scope);
}

void SetScopeRefiner(ScopeRefiner refiner) { g_refiner.store(refiner, std::memory_order_release); }

std::uint32_t ScopeUnder(std::uint32_t parent, const ScopeKind& kind, std::uint32_t name) {
  ScopeNode node = Below(parent, kind.source, 0, name);
  node.flags = kind.flags;
  node.origin = kind.origin;
  const std::uint32_t scope = FindOrAddScope(node);
  return scope != 0 ? scope : parent;
}

std::uint32_t ScopeUnder(std::uint32_t parent, Layer source, std::string_view domain, std::string_view name) {
  const std::uint32_t scope = FindOrAddScope(Below(parent, source, InternAlways(domain), InternAlways(name)));
  return scope != 0 ? scope : parent;
}

std::uint32_t PushScope(Layer source, std::string_view domain, std::string_view name, std::uint64_t payload) {
  ThreadState& thread = t_thread;
  const ScopeNode node = Below(thread.scope, source, InternAlways(domain), InternAlways(name));
  std::uint32_t scope = 0;
  // Ranges close in the order in which they opened, so above one that there was no room for, none is kept.
  if (node.depth > kMaxDepth) {
    Count(Loss::kRangeDepth);
  } else if (thread.unrecorded_depth > 0) {
    Count(Loss::kScopeTable);
  } else {
    scope = FindOrAddScope(node);
  }
  if (scope == 0) {
    ++thread.unrecorded_depth;
    return thread.scope;
  }
  thread.scope = scope;
  WriteRange(Kind::kRangePush, source, scope, payload);
  return scope;
}

void PopScope(Layer source, std::string_view domain) {
  ThreadState& thread = t_thread;
  if (thread.unrecorded_depth > 0) {
    --thread.unrecorded_depth;
    return;
  }
  const std::uint32_t domain_id = InternAlways(domain);
  std::uint32_t ended = thread.scope;
  ScopeNode node = g_scopes.Node(ended);
  while (ended != 0 && (node.source != source || node.domain != domain_id)) {
    ended = node.parent;
    node = g_scopes.Node(ended);
  }
  if (ended == 0) {
    Count(Loss::kUnbalancedPop);
    return;
  }
  thread.scope = ended == thread.scope ? node.parent : PathWithout(thread.scope, ended);
  WriteRange(Kind::kRangePop, source, ended, 0);
}

bool ScopesAreScarce() { return g_scopes.count() > (1u << ScopeTable::kCapacityLog2) / 2; }

bool LockDefinitions() { return g_lock.Acquire(); }
void UnlockDefinitions() { g_lock.Release(); }
void ResetDefinitionLock() { g_lock.Reset(); }

void WriteAllDefinitions() {
  for (std::uint32_t id = 1; id <= g_texts.count(); ++id) WriteText(id, g_texts.Text(id));
  for (std::uint32_t id = 1; id <= g_scopes.count(); ++id) WriteScope(id, g_scopes.Node(id));
}

std::uint64_t DefinitionBytes() { return g_texts.resident_bytes() + g_scopes.resident_bytes(); }

}  // namespace ledger
