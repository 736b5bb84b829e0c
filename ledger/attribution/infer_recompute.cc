#include "ledger/attribution/infer_recompute.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"

namespace ledger::attribution {
namespace {

using record::PhaseKind;
using Sizes = std::array<std::uint64_t, kRecomputeRun>;

constexpr std::size_t kDifferent = 3;

bool TellsApart(Sizes sizes) {
  std::sort(sizes.begin(), sizes.end());
  return std::unique(sizes.begin(), sizes.end()) - sizes.begin() >= static_cast<std::ptrdiff_t>(kDifferent);
}

class Inference {
 public:
  Inference(const DeviceLives& lives, const PhaseTimeline& phases)
      : lives_(lives), phases_(phases), found_(lives.lives.size(), Recompute::kNo) {}

  std::vector<Recompute> Run() {
    absl::flat_hash_set<Sizes> forward;
    std::size_t begin = 0;
    while (begin < lives_.lives.size()) {
      const std::uint32_t phase = lives_.lives[begin].begin_phase;
      std::size_t end = begin;
      while (end < lives_.lives.size() && lives_.lives[end].begin_phase == phase) ++end;
      const PhaseKind kind = phases_.intervals()[phase].kind;
      if (kind == PhaseKind::kForward) forward = RunsOf(begin, end);
      if (kind == PhaseKind::kBackward && !forward.empty()) Find(forward, begin, end);
      begin = end;
    }
    return std::move(found_);
  }

 private:
  Sizes SizesAt(std::size_t life) const {
    Sizes sizes;
    for (std::size_t i = 0; i < kRecomputeRun; ++i) sizes[i] = lives_.lives[life + i].bytes;
    return sizes;
  }

  absl::flat_hash_set<Sizes> RunsOf(std::size_t begin, std::size_t end) const {
    absl::flat_hash_set<Sizes> runs;
    for (std::size_t i = begin; i + kRecomputeRun <= end; ++i) {
      const Sizes sizes = SizesAt(i);
      if (TellsApart(sizes)) runs.insert(sizes);
    }
    return runs;
  }

  void Find(const absl::flat_hash_set<Sizes>& forward, std::size_t begin, std::size_t end) {
    std::size_t run_begin = 0, run_end = 0;  // of what is known to be recomputed
    for (std::size_t i = begin; i + kRecomputeRun <= end; ++i) {
      if (!forward.contains(SizesAt(i))) continue;
      if (i > run_end) {
        Mark(run_begin, run_end);
        run_begin = i;
      }
      run_end = i + kRecomputeRun;
    }
    Mark(run_begin, run_end);
  }

  void Mark(std::size_t begin, std::size_t end) {
    if (begin == end) return;
    const std::uint64_t last = lives_.lives[end - 1].begin;
    for (std::size_t i = begin; i < end; ++i) {
      found_[i] = lives_.lives[i].end > last ? Recompute::kValue : Recompute::kScratch;
    }
  }

  const DeviceLives& lives_;
  const PhaseTimeline& phases_;
  std::vector<Recompute> found_;
};

}  // namespace

std::vector<Recompute> InferRecompute(const DeviceLives& lives, const PhaseTimeline& phases) {
  return Inference(lives, phases).Run();
}

}  // namespace ledger::attribution
