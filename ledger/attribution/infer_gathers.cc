#include "ledger/attribution/infer_gathers.h"

#include <algorithm>
#include <vector>

namespace ledger::attribution {
namespace {

using record::Kind;

// The caching allocator rounds to 512 bytes, and leaves a rest below 1 MiB with a block of more than that.
constexpr std::uint64_t kSmallRounding = 512;
constexpr std::uint64_t kLargeBlock = std::uint64_t{1} << 20;

struct Gather {
  std::uint64_t bytes = 0;  // of the output, as the call said
  std::uint64_t life = 0;   // of the output's block
};

class Inference {
 public:
  Inference(const format::LedgerFile& file, DeviceLives& lives)
      : file_(file), lives_(lives), life_of_(lives.facts.size(), kNever) {
    for (std::uint64_t i = 0; i < lives.lives.size(); ++i) life_of_[lives.lives[i].facts] = i;
  }

  void Run() {
    auto mention = lives_.mentions.begin();
    for (const std::uint64_t event : lives_.events) {
      const Life& life = lives_.lives[event >> 1];
      const bool end = (event & 1) != 0;
      const std::uint64_t slot = end ? life.end : life.begin;
      for (; mention != lives_.mentions.end() && mention->slot < slot; ++mention) Mentioned(*mention);
      if (end) {
        run_.clear();
      } else if (!gathers_.empty()) {
        Allocated(event >> 1);
      }
    }
  }

 private:
  void Mentioned(const Mention& mention) {
    const format::Slot& slot = file_.slots()[mention.slot];
    if (slot.kind() != Kind::kCollective) return;
    run_.clear();
    const auto& call = slot.As<record::Collective>();
    if (call.operation != record::Operation::kAllGather || mention.facts == 0) return;
    const std::uint64_t life = life_of_[mention.facts];
    if (!BeginsAt(life, call.receive) || mention.slot == last_call_) return;
    last_call_ = mention.slot;  // in place, what is sent begins there, too
    const auto communicator = file_.FindCommunicator(call.communicator, mention.slot);
    if (!communicator) return;
    const std::uint64_t info = file_.communicators()[*communicator].info;
    const std::uint64_t ranks = file_.slots()[info].As<record::CommunicatorInfo>().nranks;
    const std::uint64_t bytes = call.count * call.element_bytes * ranks;
    thread_ = call.commit.thread;
    // FSDP2 gathers in place, and copies parameters out. What sends from memory of its own (FSDP1, or the part of an
    // activation) uses the output itself.
    const bool in_place = call.send >= call.receive && call.send - call.receive < bytes;
    if (!in_place) return;
    gathers_.push_back({bytes, life});
    if (gathers_.size() > kOutstanding) gathers_.erase(gathers_.begin());
  }

  bool BeginsAt(std::uint64_t life, std::uint64_t address) const {
    const format::Slot& slot = file_.slots()[lives_.lives[life].begin];
    return slot.kind() == Kind::kBlockAlloc && slot.As<record::Block>().address == address;
  }

  void Allocated(std::uint64_t life) {
    const std::uint64_t now = lives_.lives[life].begin;
    if (file_.slots()[now].commit().thread != thread_) return;
    run_.push_back(life);
    if (run_.size() > kLongestRun) run_.erase(run_.begin());
    // The last blocks of the run, as many as it takes.
    std::uint64_t bytes = 0, rounding = 0;
    for (std::size_t i = run_.size(); i-- > 0;) {
      const std::uint64_t size = lives_.lives[run_[i]].bytes;
      bytes += size;
      rounding += size > kLargeBlock ? kLargeBlock : kSmallRounding;
      const auto found = std::find_if(gathers_.begin(), gathers_.end(), [&](const Gather& gather) {
        return bytes >= gather.bytes && bytes - gather.bytes < rounding && lives_.lives[gather.life].AliveAt(now);
      });
      if (found == gathers_.end()) continue;
      for (; i < run_.size(); ++i) Mark(run_[i]);
      run_.clear();
      gathers_.erase(found);
      return;
    }
  }

  void Mark(std::uint64_t index) {
    Life& life = lives_.lives[index];
    if (life.facts == 0) {
      life.facts = static_cast<std::uint32_t>(lives_.facts.size());
      lives_.facts.emplace_back();
    }
    Facts& facts = lives_.facts[life.facts];
    if (facts.role == Role::kNone) facts.role = Role::kGatheredParameter;
  }

  static constexpr std::size_t kOutstanding = 8;   // prefetched ones
  static constexpr std::size_t kLongestRun = 256;  // parameters of one group

  const format::LedgerFile& file_;
  DeviceLives& lives_;
  std::vector<std::uint64_t> life_of_;  // by facts that were there before
  std::uint64_t last_call_ = kNever;    // slot
  std::uint32_t thread_ = 0;            // of the last gather
  std::vector<Gather> gathers_;
  std::vector<std::uint64_t> run_;  // of blocks allocated one after the other
};

}  // namespace

void InferGathers(const format::LedgerFile& file, DeviceLives& lives) {
  if (!file.communicators().empty()) Inference(file, lives).Run();
}

}  // namespace ledger::attribution
