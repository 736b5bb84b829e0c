#include "ledger/attribution/timeline.h"

namespace ledger::attribution {
namespace {

class Sweep {
 public:
  Sweep(const DeviceLives& lives, const PhaseTimeline& phases) : lives_(lives), phases_(phases) {}

  CategoryTimeline Run() {
    OpenPhase(0);
    for (const std::uint64_t event : lives_.events) {
      const Life& life = lives_.lives[event >> 1];
      const bool end = (event & 1) != 0;
      const std::uint32_t phase = end ? life.end_phase : life.begin_phase;
      while (phase_->interval < phase) NextPhase();
      end ? Subtract(life) : Add(life);
    }
    while (phase_->interval + std::size_t{1} < phases_.intervals().size()) NextPhase();
    ClosePhase();
    for (const CategoryMaximum& maximum : timeline_.maxima) timeline_.sum_of_maxima += maximum.bytes;
    return std::move(timeline_);
  }

 private:
  void Add(const Life& life) {
    std::uint64_t& bytes = now_[Index(life.category)];
    bytes += life.bytes;
    total_ += life.bytes;
    CategoryMaximum& maximum = timeline_.maxima[Index(life.category)];
    if (bytes > maximum.bytes) maximum = {bytes, life.begin};
    if (total_ > phase_->peak_bytes) {
      phase_->peak_bytes = total_;
      phase_->peak_slot = life.begin;
      phase_->at_peak = now_;
    }
    if (total_ > timeline_.peak_bytes) {
      timeline_.peak_bytes = total_;
      timeline_.peak_slot = life.begin;
    }
  }

  void Subtract(const Life& life) {
    now_[Index(life.category)] -= life.bytes;
    total_ -= life.bytes;
  }

  void OpenPhase(std::uint32_t interval) {
    phase_ = &timeline_.phases.emplace_back();
    phase_->interval = interval;
    phase_->begin_bytes = phase_->peak_bytes = total_;
    phase_->peak_slot = phases_.intervals()[interval].from;
    phase_->at_peak = now_;
  }

  void ClosePhase() {
    phase_->end_bytes = total_;
    phase_->at_end = now_;
  }

  void NextPhase() {
    ClosePhase();
    OpenPhase(phase_->interval + 1);
  }

  const DeviceLives& lives_;
  const PhaseTimeline& phases_;
  CategoryTimeline timeline_;
  CategoryBytes now_{};
  std::uint64_t total_ = 0;
  PhaseUse* phase_ = nullptr;  // the last of timeline_.phases
};

}  // namespace

CategoryTimeline MakeTimeline(const DeviceLives& lives, const PhaseTimeline& phases) {
  return Sweep(lives, phases).Run();
}

}  // namespace ledger::attribution
