#include "ledger/attribution/attribution.h"

#include <array>
#include <utility>

#include "ledger/attribution/infer_gathers.h"

namespace ledger::attribution {
namespace {

std::array<bool, replay::kMaxDevices> TellsBlocks(const std::vector<replay::DeviceAnalysis>& devices) {
  std::array<bool, replay::kMaxDevices> tells{};
  for (const replay::DeviceAnalysis& device : devices) {
    tells[static_cast<std::size_t>(device.device)] = device.backend == replay::Backend::kBlocks;
  }
  return tells;
}

}  // namespace

Attribution::Attribution(const format::LedgerFile& file, const std::vector<replay::DeviceAnalysis>& devices)
    : file_(file), scopes_(file), phases_(file, scopes_), collector_(file, phases_, TellsBlocks(devices)) {
  collector_.Collect();
  for (const std::int8_t device : collector_.devices()) {
    DeviceLives& lives = *collector_.device(device);
    if (!scopes_.nodes_observed()) InferGathers(file_, lives);
    Classify(grounds(), lives);
    timelines_.emplace_back(device, MakeTimeline(lives, phases_));
  }
}

const CategoryTimeline* Attribution::timeline(std::int8_t device) const {
  for (const auto& [ordinal, timeline] : timelines_) {
    if (ordinal == device) return &timeline;
  }
  return nullptr;
}

std::vector<std::uint64_t> Attribution::AliveAt(std::int8_t device, std::uint64_t slot) const {
  std::vector<std::uint64_t> alive;
  const DeviceLives* const all = lives(device);
  if (all == nullptr) return alive;
  for (std::uint64_t i = 0; i < all->lives.size() && all->lives[i].begin <= slot; ++i) {
    if (all->lives[i].AliveAt(slot)) alive.push_back(i);
  }
  return alive;
}

}  // namespace ledger::attribution
