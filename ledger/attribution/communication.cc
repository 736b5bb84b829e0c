#include "ledger/attribution/communication.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ledger/replay/communicator_name.h"
#include "ledger/replay/driver_memory.h"

namespace ledger::attribution {
namespace {

using record::Operation;
using record::PhaseKind;

// No tensor is larger than the address space: what claims to be counts as nothing.
std::uint64_t Times(std::uint64_t bytes, std::uint64_t factor) {
  return factor != 0 && bytes > replay::kMaxAllocationBytes / factor ? 0 : bytes * factor;
}

bool CountsOneRanksPart(Operation operation) {
  switch (operation) {
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
    case Operation::kGather:
    case Operation::kScatter:
      return true;
    default:
      return false;
  }
}

class Bookkeeper {
 public:
  Bookkeeper(const Grounds& grounds, const DeviceLives& lives) : grounds_(grounds), lives_(lives) {}

  std::vector<Communication> Collect() {
    std::uint64_t last = kNever;
    for (const Mention& mention : lives_.mentions) {
      const format::Slot& slot = grounds_.file.slots()[mention.slot];
      if (slot.kind() != record::Kind::kCollective) continue;
      Row& row = RowOf(slot.As<record::Collective>(), mention.slot);
      if (mention.slot != last) Count(slot.As<record::Collective>(), row);
      last = mention.slot;
      if (mention.facts != 0) row.blocks.insert(mention.facts);
    }
    AddBuffers();
    std::vector<Communication> result;
    for (Row& row : rows_) {
      for (const auto& [name, calls] : row.calls_of) row.sums.calls_of[grounds_.file.Text(name)] += calls;
      result.push_back(std::move(row.sums));
    }
    std::stable_sort(result.begin(), result.end(), [](const Communication& a, const Communication& b) {
      return std::tuple(!a.in_setup, a.step) < std::tuple(!b.in_setup, b.step);
    });
    return result;
  }

 private:
  struct Row {
    Communication sums;
    std::uint32_t rank = 0;                           // of this process in the communicator
    std::set<std::uint32_t> blocks;                   // by their facts
    std::map<std::uint32_t, std::uint64_t> calls_of;  // by text
  };
  // In setup, step, operation, position of the communicator in the ledger.
  using Key = std::tuple<bool, std::uint64_t, Operation, std::size_t>;

  Row& RowOf(const record::Collective& call, std::uint64_t slot) {
    const PhaseInterval& interval = grounds_.phases.intervals()[grounds_.phases.IndexAt(slot)];
    const bool in_setup = interval.kind == PhaseKind::kSetup;
    const auto communicator = grounds_.file.FindCommunicator(call.communicator, slot);
    const Key key{in_setup, interval.step, call.operation, communicator.value_or(kUnknownCommunicator)};
    const auto [entry, added] = by_key_.try_emplace(key, rows_.size());
    if (!added) return rows_[entry->second];
    Row& row = rows_.emplace_back();
    row.sums.in_setup = in_setup;
    row.sums.step = interval.step;
    row.sums.operation = call.operation;
    row.sums.communicator = replay::CommunicatorName(grounds_.file, call.communicator, slot);
    if (communicator) {
      const format::Slot& info = grounds_.file.slots()[grounds_.file.communicators()[*communicator].info];
      row.sums.ranks = info.As<record::CommunicatorInfo>().nranks;
      row.sums.ranks_of_job = replay::ProcessGroupRanks(grounds_.file, *communicator);
      row.rank = info.As<record::CommunicatorInfo>().rank;
    }
    return row;
  }

  void Count(const record::Collective& call, Row& row) const {
    const std::uint64_t payload = PayloadBytes(call, row.sums.ranks);
    ++row.sums.calls;
    const format::ScopeNode& scope = grounds_.file.scopes().Get(call.scope);
    if ((scope.flags & record::kScopeCollective) != 0) ++row.calls_of[scope.name];
    row.sums.payload_bytes += payload;
    row.sums.wire_bytes += WireBytes(call.operation, payload, row.sums.ranks, call.peer_or_root == row.rank);
  }

  void AddBuffers() {
    if (rows_.empty()) return;
    std::vector<std::uint64_t> bytes(lives_.facts.size());
    for (const Life& life : lives_.lives) bytes[life.facts] = life.bytes;
    for (Row& row : rows_) {
      for (const std::uint32_t block : row.blocks) row.sums.buffer_bytes += bytes[block];
    }
  }

  static constexpr std::size_t kUnknownCommunicator = ~std::size_t{0};

  const Grounds& grounds_;
  const DeviceLives& lives_;
  std::vector<Row> rows_;
  std::map<Key, std::size_t> by_key_;
};

}  // namespace

std::uint64_t PayloadBytes(const record::Collective& call, std::uint32_t ranks) {
  const std::uint64_t bytes = Times(call.count, call.element_bytes);
  return CountsOneRanksPart(call.operation) ? Times(bytes, std::max<std::uint32_t>(ranks, 1)) : bytes;
}

std::uint64_t WireBytes(Operation operation, std::uint64_t payload, std::uint32_t ranks, bool at_peer) {
  if (operation == Operation::kSend || operation == Operation::kReceive) return at_peer ? 0 : payload;
  if (ranks <= 1) return 0;
  const std::uint64_t others = payload - payload / ranks;  // (ranks - 1) / ranks
  switch (operation) {
    case Operation::kAllReduce:  // a reduce-scatter and an all-gather
      return 2 * others;
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
      return others;
    case Operation::kGather:
    case Operation::kScatter:
      return at_peer ? others : payload / ranks;
    default:
      return payload;
  }
}

std::vector<Communication> CommunicationOf(const Grounds& grounds, const DeviceLives& lives) {
  return Bookkeeper(grounds, lives).Collect();
}

}  // namespace ledger::attribution
