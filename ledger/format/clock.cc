#include "ledger/format/clock.h"

#include <algorithm>
#include <limits>

namespace ledger::format {
namespace {

// Half of the range: differences of two such values cannot overflow.
constexpr std::int64_t kMaxNs = std::numeric_limits<std::int64_t>::max() / 2;

std::int64_t Saturate(long double ns) {
  if (ns >= static_cast<long double>(kMaxNs)) return kMaxNs;
  if (ns <= static_cast<long double>(-kMaxNs)) return -kMaxNs;
  return static_cast<std::int64_t>(ns);
}

}  // namespace

Clock::Clock(const record::FileHeader& header)
    : ticks_are_ns_(header.ticks_source != record::TicksSource::kTsc),
      open_ticks_(header.open_ticks),
      open_realtime_ns_(Saturate(static_cast<long double>(header.open_realtime_ns))) {
  AddAnchor(header.load_ticks, header.load_monotonic_ns);
  AddAnchor(header.open_ticks, header.open_monotonic_ns);
}

bool Clock::AddAnchor(std::uint64_t ticks, std::uint64_t monotonic_ns) {
  if (ticks == 0 && monotonic_ns == 0) return false;
  const auto after = std::upper_bound(anchors_.begin(), anchors_.end(), ticks,
                                      [](std::uint64_t t, const Anchor& a) { return t < a.ticks; });
  if (after != anchors_.end() && after->ns <= monotonic_ns) return false;
  if (after != anchors_.begin() && ((after - 1)->ticks == ticks || (after - 1)->ns >= monotonic_ns)) return false;
  anchors_.insert(after, {ticks, monotonic_ns});
  return true;
}

std::int64_t Clock::MonotonicNs(std::uint64_t ticks) const {
  if (ticks_are_ns_ || anchors_.empty()) return Saturate(static_cast<long double>(ticks));
  auto after = std::upper_bound(anchors_.begin(), anchors_.end(), ticks,
                                [](std::uint64_t t, const Anchor& a) { return t < a.ticks; });
  const Anchor& base = after == anchors_.begin() ? anchors_.front() : *(after - 1);
  const bool inside = after != anchors_.begin() && after != anchors_.end();
  const Anchor& from = inside ? base : anchors_.front();
  const Anchor& to = inside ? *after : anchors_.back();
  long double rate = 1;
  if (to.ticks > from.ticks) {
    rate = static_cast<long double>(to.ns - from.ns) / static_cast<long double>(to.ticks - from.ticks);
  }
  const long double delta = static_cast<long double>(ticks) - static_cast<long double>(base.ticks);
  return Saturate(static_cast<long double>(base.ns) + delta * rate);
}

}  // namespace ledger::format
