#include "ledger/attribution/infer_copies.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace ledger::attribution {
namespace {

// Up to this size, the caching allocator rounds to 512 bytes; a larger block may have a rest of less than this.
constexpr std::uint64_t kLarge = std::uint64_t{1} << 20;
// What that may add to many small blocks: a part of this.
constexpr std::uint64_t kRounding = 16;

using Counts = absl::flat_hash_map<std::uint64_t, std::size_t>;  // by class of size

// Of the backward that made the most of them: another one may have added to those that were there.
std::vector<std::uint64_t> GradientsOfOneBackward(const DeviceLives& lives) {
  std::vector<std::uint64_t> most, now;
  std::uint32_t phase = kNoPhase;
  for (const Life& life : lives.lives) {
    if (life.category != Category::kGradient) continue;
    if (life.begin_phase != phase) {
      if (now.size() > most.size()) most = now;
      now.clear();
      phase = life.begin_phase;
    }
    now.push_back(life.bytes);
  }
  return now.size() > most.size() ? now : most;
}

bool IsWeight(const PhaseTimeline& phases, const Life& life) {
  return life.category == Category::kParameter && life.evidence == Evidence::kLifetime &&
         phases.intervals()[life.begin_phase].kind == record::PhaseKind::kSetup;
}

// Sizes that may be of tensors of one size.
class SizeClasses {
 public:
  explicit SizeClasses(std::vector<std::uint64_t> sizes) {
    std::sort(sizes.begin(), sizes.end());
    std::uint64_t before = 0;
    for (const std::uint64_t size : sizes) {
      if (size <= kLarge) continue;
      if (first_.empty() || size - before >= kLarge) first_.push_back(size);
      before = size;
    }
  }
  // The smallest of them.
  std::uint64_t Of(std::uint64_t size) const {
    return size <= kLarge ? size : *std::prev(std::upper_bound(first_.begin(), first_.end(), size));
  }
  Counts Count(const std::vector<std::uint64_t>& sizes) const {
    Counts counts;
    for (const std::uint64_t size : sizes) ++counts[Of(size)];
    return counts;
  }

 private:
  std::vector<std::uint64_t> first_;  // of each class of large sizes
};

bool ThereMoreThanOnce(const Counts& trained, const Counts& weights) {
  std::size_t times = 0;  // as the large sizes have it
  for (const auto& [size, gradients] : trained) {
    const auto found = weights.find(size);
    if (found == weights.end() || found->second < 2 * gradients) return false;
    if (size <= kLarge) continue;
    const bool multiple = found->second % gradients == 0;
    if (!multiple || (times != 0 && times != found->second / gradients)) return false;
    times = found->second / gradients;
  }
  // Buffers may have small sizes, too.
  return std::all_of(trained.begin(), trained.end(),
                     [&](const auto& gradients) { return weights.at(gradients.first) >= times * gradients.second; });
}

std::uint64_t Sum(const std::vector<std::uint64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0});
}

// Where gradients lie in a few flat blocks, as shards do: the weights come to twice their bytes, and every size is
// there for an even number of times.
bool ThereTwiceAsFlat(const std::vector<std::uint64_t>& gradients, const std::vector<std::uint64_t>& sizes,
                      const Counts& weights) {
  if (sizes.size() <= 2 * gradients.size()) return false;
  const std::uint64_t bytes = Sum(sizes), twice = 2 * Sum(gradients);
  const std::uint64_t rounding = bytes / kRounding;
  if (bytes > twice + rounding || twice > bytes + rounding) return false;
  return std::all_of(weights.begin(), weights.end(), [](const auto& entry) { return entry.second % 2 == 0; });
}

Counts HalfOf(Counts counts) {
  for (auto& [size, count] : counts) count /= 2;
  return counts;
}

}  // namespace

void InferCopies(const PhaseTimeline& phases, DeviceLives& lives) {
  const std::vector<std::uint64_t> gradients = GradientsOfOneBackward(lives);
  if (gradients.empty()) return;
  std::vector<std::uint64_t> sizes;
  for (const Life& life : lives.lives) {
    if (IsWeight(phases, life)) sizes.push_back(life.bytes);
  }
  std::vector<std::uint64_t> all = sizes;
  all.insert(all.end(), gradients.begin(), gradients.end());
  const SizeClasses classes(std::move(all));
  Counts left = classes.Count(gradients);
  const Counts weights = classes.Count(sizes);
  if (!ThereMoreThanOnce(left, weights)) {
    if (!ThereTwiceAsFlat(gradients, sizes, weights)) return;
    left = HalfOf(weights);
  }
  for (Life& life : lives.lives) {
    if (!IsWeight(phases, life)) continue;
    const auto of_size = left.find(classes.Of(life.bytes));
    if (of_size == left.end()) continue;
    if (of_size->second != 0) {
      --of_size->second;
      continue;
    }
    life.category = Category::kBuffer;
    life.role = Role::kStateOfProgram;
  }
}

}  // namespace ledger::attribution
