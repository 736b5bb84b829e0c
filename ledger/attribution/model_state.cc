#include "ledger/attribution/model_state.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "ledger/attribution/describe_life.h"
#include "ledger/replay/driver_memory.h"

namespace ledger::attribution {
namespace {

using record::NameCategory;

// Of what is kept.
NameCategory NameOfCategory(Category category) {
  switch (category) {
    case Category::kParameter:
      return NameCategory::kParameter;
    case Category::kMasterParameter:
      return NameCategory::kMasterParameter;
    default:
      return NameCategory::kOptimizerState;
  }
}

enum class GradientOf { kNone, kParameter, kWholeParameter, kMasterParameter };

class Collector {
 public:
  Collector(const Grounds& grounds, const DeviceLives& lives) : grounds_(grounds), lives_(lives) {}

  ModelState Collect() {
    ReadStorages();
    FindInstant();
    if (state_.slot == kNever && state_.held[Index(Category::kGradient)] == 0) return {};
    for (const Life& life : lives_.lives) {
      if (Kept(life) && life.AliveAt(state_.slot)) state_.held[Index(life.category)] += StorageBytes(life);
    }
    CollectTensors();
    return std::move(state_);
  }

 private:
  using Key = std::tuple<Category, std::string, std::string>;

  static bool Kept(const Life& life) { return IsModelState(life.category) && life.category != Category::kGradient; }

  const record::Name* NameIn(const Mention& mention) const {
    const format::Slot& slot = grounds_.file.slots()[mention.slot];
    return slot.kind() == record::Kind::kName ? &slot.As<record::Name>() : nullptr;
  }

  void ReadStorages() {
    storage_.resize(lives_.facts.size());
    for (const Mention& mention : lives_.mentions) {
      const record::Name* const name = NameIn(mention);
      if (name == nullptr || mention.facts == 0) continue;
      storage_[mention.facts] = std::max(storage_[mention.facts], name->bytes);
    }
  }

  // As it was named; where it has no name, as it was requested.
  std::uint64_t StorageBytes(const Life& life) const {
    std::uint64_t bytes = storage_[life.facts];
    const format::Slot& slot = grounds_.file.slots()[life.begin];
    if (bytes == 0 && slot.kind() == record::Kind::kBlockAlloc) bytes = slot.As<record::Block>().requested;
    return bytes == 0 ? life.bytes : std::min(bytes, life.bytes);
  }

  GradientOf KindOf(const Life& life) const {
    if (life.category != Category::kGradient) return GradientOf::kNone;
    if (life.role == Role::kUnsharded) return GradientOf::kWholeParameter;
    const std::uint64_t owner = lives_.FactsOf(life).owner;
    const bool of_master = owner != kNever && lives_.lives[owner].category == Category::kMasterParameter;
    return of_master ? GradientOf::kMasterParameter : GradientOf::kParameter;
  }

  // The instant with the most of what is kept, in a step if there are any; and the maxima of gradients.
  void FindInstant() {
    std::array<std::uint64_t, 4> gradients{};
    std::array<std::uint64_t, 4> largest{};
    std::uint64_t kept = 0, most = 0;
    bool most_in_step = false;
    for (const std::uint64_t event : lives_.events) {
      const Life& life = lives_.lives[event >> 1];
      const bool end = (event & 1) != 0;
      const std::size_t kind = static_cast<std::size_t>(KindOf(life));
      if (kind == 0 && !Kept(life)) continue;
      std::uint64_t& sum = kind == 0 ? kept : gradients[kind];
      sum += end ? 0 - StorageBytes(life) : StorageBytes(life);
      if (end) continue;
      largest[kind] = std::max(largest[kind], gradients[kind]);
      const bool in_step = grounds_.phases.intervals()[life.begin_phase].kind != record::PhaseKind::kSetup;
      if (kind != 0 || (in_step == most_in_step && kept <= most) || (most_in_step && !in_step)) continue;
      most = kept;
      most_in_step = in_step;
      state_.slot = life.begin;
    }
    state_.held[Index(Category::kGradient)] = largest[static_cast<std::size_t>(GradientOf::kParameter)];
    state_.unsharded_gradients = largest[static_cast<std::size_t>(GradientOf::kWholeParameter)];
    state_.master_gradients = largest[static_cast<std::size_t>(GradientOf::kMasterParameter)];
  }

  void CollectTensors() {
    std::vector<std::uint64_t> life_of(lives_.facts.size(), kNever);
    for (std::uint64_t i = 0; i < lives_.lives.size(); ++i) life_of[lives_.lives[i].facts] = i;
    std::map<std::string, const StateTensor*> parameters;
    for (const Mention& mention : lives_.mentions) {
      const record::Name* const name = NameIn(mention);
      if (name == nullptr || mention.facts == 0) continue;
      const Life& life = lives_.lives[life_of[mention.facts]];
      if (Kept(life) && life.AliveAt(state_.slot)) AddKept(*name, mention, life.category);
    }
    DropTied();
    SpreadShards();
    for (const auto& [key, tensor] : tensors_) {
      if (tensor.category == Category::kParameter) parameters[tensor.name] = &tensor;
    }
    std::map<Key, StateTensor> gradients;
    for (const Mention& mention : lives_.mentions) {
      const record::Name* const name = NameIn(mention);
      if (name == nullptr || name->category != NameCategory::kGradient || mention.facts == 0) continue;
      const auto parameter = parameters.find(TextOf(*name, mention));
      if (parameter == parameters.end() || name->element_bytes == 0) continue;
      StateTensor& gradient = gradients[{Category::kGradient, parameter->first, ""}];
      gradient = *parameter->second;
      gradient.category = Category::kGradient;
      gradient.element_bytes = name->element_bytes;
    }
    tensors_.merge(gradients);
    for (auto& [key, tensor] : tensors_) state_.tensors.push_back(std::move(tensor));
  }

  // A record by the op adapter knows the address of the parameter and not its name.
  std::string TextOf(const record::Name& name, const Mention& mention) const {
    if (name.text != 0) return grounds_.file.Text(name.text);
    return mention.owner == kNever ? "" : NameOf(grounds_, lives_, lives_.lives[mention.owner]);
  }

  // A block may have had names of other kinds before it was known what it is.
  void AddKept(const record::Name& name, const Mention& mention, Category category) {
    const std::string text = TextOf(name, mention);
    if (name.category != NameOfCategory(category) || text.empty() || name.element_bytes == 0) return;
    const std::uint64_t limit = replay::kMaxAllocationBytes / name.element_bytes;
    StateTensor tensor{category, text, grounds_.file.Text(name.key), std::min(name.elements, limit),
                       name.element_bytes};
    if (tensor.elements == 0) tensor.elements = name.bytes / name.element_bytes;
    const Key key{category, tensor.name, tensor.key};
    if (category == Category::kParameter && (name.flags & record::kNameSharded) != 0) {
      local_elements_[tensor.name] = name.bytes / name.element_bytes;
    }
    tensors_[key] = std::move(tensor);
    places_[mention.facts][key] = name.bytes;
  }

  // State that was made for a shard knows nothing of the whole: it is as large a part of it as its parameter's shard.
  void SpreadShards() {
    for (auto& [key, tensor] : tensors_) {
      const auto local = local_elements_.find(tensor.name);
      if (tensor.category == Category::kParameter || local == local_elements_.end()) continue;
      const auto parameter = tensors_.find({Category::kParameter, tensor.name, ""});
      if (parameter != tensors_.end() && tensor.elements == local->second) tensor.elements = parameter->second.elements;
    }
  }

  // Names of one storage: parameters that are tied, each as large as the storage or its whole, or views of one buffer.
  void DropTied() {
    for (const auto& [facts, keys] : places_) {
      if (keys.size() < 2) continue;
      const StateTensor& first = tensors_[keys.begin()->first];
      for (auto next = std::next(keys.begin()); next != keys.end(); ++next) {
        const auto other = tensors_.find(next->first);
        if (other == tensors_.end()) continue;
        const bool alike = other->second.category == first.category && other->second.elements == first.elements &&
                           other->second.element_bytes == first.element_bytes;
        if (alike && first.Bytes() >= next->second) tensors_.erase(other);
      }
    }
  }

  const Grounds& grounds_;
  const DeviceLives& lives_;
  ModelState state_;
  std::vector<std::uint64_t> storage_;  // by facts: bytes, as the names have them
  std::map<Key, StateTensor> tensors_;
  std::map<std::string, std::uint64_t> local_elements_;           // of sharded parameters, by name
  std::map<std::uint32_t, std::map<Key, std::uint64_t>> places_;  // by facts: names and bytes of the storage
};

}  // namespace

ModelState ModelStateOf(const Grounds& grounds, const DeviceLives& lives) {
  return Collector(grounds, lives).Collect();
}

bool IsPersistent(const Grounds& grounds, const Life& life) {
  if (life.category == Category::kBuffer) return true;
  if (life.category != Category::kGradient) return IsModelState(life.category);
  if (life.role == Role::kUnsharded) return false;
  const auto& intervals = grounds.phases.intervals();
  const std::size_t end = std::min<std::size_t>(life.end_phase, intervals.size() - 1);
  return intervals[end].step > intervals[life.begin_phase].step;
}

}  // namespace ledger::attribution
