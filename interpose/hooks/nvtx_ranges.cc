#include "interpose/hooks/nvtx_ranges.h"

#include <atomic>

#include "interpose/core/recorder.h"

namespace ledger::nvtx {
namespace {

constexpr std::size_t kLevels = 16;  // domains beyond these have no level
constexpr nvtxRangeId_t kOurs = nvtxRangeId_t{1} << 63;

constinit std::atomic<nvtxRangeId_t> g_last_id{0};
constinit thread_local std::uint16_t t_depth[kLevels] = {};
constinit thread_local std::uint32_t t_calls = 0;

record::Range NewRecord(record::Kind kind) {
  record::Range record = {};
  record.commit = {static_cast<std::uint16_t>(kind), record::Layer::kNvtx, record::kNoDevice, 0};
  record.scope = CurrentScope();
  return record;
}

}  // namespace

int Push(const Domain& domain, std::string_view name, std::uint64_t payload) {
  const ErrnoSaver errno_saver;
  ++t_calls;
  PushScope(record::Layer::kNvtx, domain.name, name, payload);
  return domain.index < kLevels ? t_depth[domain.index]++ : kLevelUnknown;
}

int Pop(const Domain& domain) {
  const ErrnoSaver errno_saver;
  ++t_calls;
  PopScope(record::Layer::kNvtx, domain.name);
  if (domain.index >= kLevels) return kLevelUnknown;
  return t_depth[domain.index] == 0 ? -1 : --t_depth[domain.index];
}

void Mark(const Domain& domain, std::string_view name, std::uint64_t payload) {
  const ErrnoSaver errno_saver;
  ++t_calls;
  if (!Active()) return;
  record::Range record = NewRecord(record::Kind::kMark);
  record.text = InternText(name);
  record.domain = InternText(domain.name);
  record.payload = payload;
  Append(record);
}

nvtxRangeId_t NewRangeId() { return kOurs | (g_last_id.fetch_add(1, std::memory_order_relaxed) + 1); }

void Start(const Domain& domain, std::string_view name, std::uint64_t payload, nvtxRangeId_t id) {
  const ErrnoSaver errno_saver;
  ++t_calls;
  if (!Active()) return;
  record::Range record = NewRecord(record::Kind::kRangeStart);
  record.text = InternText(name);
  record.domain = InternText(domain.name);
  record.payload = payload;
  record.id = id;
  Append(record);
}

void End(nvtxRangeId_t id) {
  const ErrnoSaver errno_saver;
  ++t_calls;
  if (!Active()) return;
  record::Range record = NewRecord(record::Kind::kRangeEnd);
  record.id = id;
  Append(record);
}

std::uint32_t CallsOfThisThread() { return t_calls; }

}  // namespace ledger::nvtx
