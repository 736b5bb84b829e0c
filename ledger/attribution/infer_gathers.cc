#include "ledger/attribution/infer_gathers.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "ledger/replay/balance.h"
#include "ledger/replay/driver_memory.h"

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
  Inference(const format::LedgerFile& file, std::int8_t device, DeviceLives& lives)
      : file_(file), device_(device), lives_(lives) {}

  void Run() {
    const auto slots = file_.slots();
    for (std::uint64_t i = 0; i < slots.size(); ++i) {
      if (!slots[i].committed() || slots[i].commit().device != device_) continue;
      switch (slots[i].kind()) {
        case Kind::kBlockAlloc:
          Allocated(slots[i].As<record::Block>());
          break;
        case Kind::kBlockFree:
          run_.clear();
          alive_.erase(slots[i].As<record::Block>().address);
          break;
        case Kind::kCollective:
          Called(slots[i].As<record::Collective>(), i);
          break;
        default:
          break;
      }
    }
  }

 private:
  void Called(const record::Collective& call, std::uint64_t slot) {
    run_.clear();
    if (call.operation != record::Operation::kAllGather) return;
    const auto output = alive_.find(call.receive);
    if (output == alive_.end()) return;
    const auto communicator = replay::FindCommunicator(file_, call.communicator, slot);
    if (!communicator) return;
    const std::uint64_t made = file_.communicators()[*communicator];
    const std::uint64_t ranks = file_.slots()[made].As<record::CommunicatorInfo>().nranks;
    const std::uint64_t bytes = call.count * call.element_bytes * ranks;
    thread_ = call.commit.thread;
    gathers_.push_back({bytes, output->second});
    if (gathers_.size() > kOutstanding) gathers_.erase(gathers_.begin());
  }

  void Allocated(const record::Block& block) {
    if (block.size > replay::kMaxAllocationBytes) return;  // no life either
    const std::uint64_t life = next_life_++;
    alive_[block.address] = life;
    if (gathers_.empty() || block.commit.thread != thread_) return;
    run_.push_back(life);
    if (run_.size() > kLongestRun) run_.erase(run_.begin());
    // The last blocks of the run, as many as it takes.
    std::uint64_t bytes = 0, rounding = 0;
    for (std::size_t i = run_.size(); i-- > 0;) {
      const std::uint64_t size = lives_.lives[run_[i]].bytes;
      bytes += size;
      rounding += size > kLargeBlock ? kLargeBlock : kSmallRounding;
      const auto found = std::find_if(gathers_.begin(), gathers_.end(), [&](const Gather& gather) {
        return bytes >= gather.bytes && bytes - gather.bytes < rounding && StillAlive(gather);
      });
      if (found == gathers_.end()) continue;
      for (; i < run_.size(); ++i) Mark(run_[i]);
      run_.clear();
      gathers_.erase(found);
      return;
    }
  }

  bool StillAlive(const Gather& gather) const {
    const auto& block = file_.slots()[lives_.lives[gather.life].begin].As<record::Block>();
    const auto alive = alive_.find(block.address);
    return alive != alive_.end() && alive->second == gather.life;
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
  const std::int8_t device_;
  DeviceLives& lives_;
  std::uint64_t next_life_ = 0;
  std::uint32_t thread_ = 0;
  std::vector<Gather> gathers_;
  std::vector<std::uint64_t> run_;
  absl::flat_hash_map<std::uint64_t, std::uint64_t> alive_;  // address → index of the life
};

}  // namespace

void InferGathers(const format::LedgerFile& file, std::int8_t device, DeviceLives& lives) {
  Inference(file, device, lives).Run();
}

}  // namespace ledger::attribution
