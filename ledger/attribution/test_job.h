// A training job as a ledger, for tests of attribution: what an agent, an adapter, and the allocator would record.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "ledger/format/test_ledger.h"

namespace ledger::attribution {

// The lives are those of device 0.
class TestJob {
 public:
  explicit TestJob(bool agent) : agent_(agent) { ledger.Alloc(0, kSegment, std::uint64_t{1} << 40); }

  void Enter(record::PhaseKind kind, std::uint64_t step) {
    if (!agent_) return;
    record::Phase phase = {};
    phase.phase = kind;
    phase.step = step;
    ledger.Add(record::Kind::kPhase, record::kNoDevice, phase, record::Layer::kAgent);
  }

  // On the thread that backward runs on, where `backward` is set.
  std::uint64_t Allocate(std::uint64_t bytes, std::uint32_t scope = 0, bool backward = false) {
    const std::uint64_t address = kSegment + (next_ += std::uint64_t{1} << 24);
    ledger.BlockAlloc(0, address, bytes, scope);
    if (backward) ledger.At<record::Block>(ledger.slots() - 1).commit.thread = kBackwardThread;
    return address;
  }
  void Free(std::uint64_t address, std::uint64_t bytes, std::uint32_t scope = 0, bool backward = false) {
    ledger.BlockFree(0, address, bytes, scope);
    if (backward) ledger.At<record::Block>(ledger.slots() - 1).commit.thread = kBackwardThread;
  }

  void Name(std::uint64_t address, record::NameCategory category, absl::string_view text,
            std::uint64_t belongs_to = 0) {
    record::Name name = {};
    name.address = address;
    name.belongs_to = belongs_to;
    name.category = category;
    name.text = text.empty() ? 0 : ledger.Text(text);
    ledger.Add(record::Kind::kName, 0, name, record::Layer::kAgent);
  }
  void Save(std::uint64_t address, std::uint8_t flags = 0) {
    record::SavedTensor saved = {};
    saved.address = address;
    saved.flags = flags;
    ledger.Add(record::Kind::kSavedTensor, 0, saved, record::Layer::kOp);
  }
  void Collect(record::Operation operation, std::uint64_t send, std::uint64_t receive, std::uint64_t count = 1) {
    record::Collective call = {};
    call.operation = operation;
    call.send = send;
    call.receive = receive;
    call.count = count;
    call.element_bytes = 1;
    call.communicator = kCommunicator;
    ledger.Add(record::Kind::kCollective, 0, call, record::Layer::kNccl);
  }
  std::uint32_t Scope(std::uint32_t parent, absl::string_view name, std::uint8_t flags, record::Layer source,
                      std::uint32_t origin = 0) {
    const std::uint32_t id = ledger.Scope(parent, name);
    auto& definition = ledger.At<record::ScopeDefinition>(ledger.slots() - 1);
    definition.flags = flags;
    definition.source = source;
    definition.origin = origin;
    return id;
  }

  static constexpr std::uint64_t kSegment = std::uint64_t{1} << 40;
  static constexpr std::uint64_t kCommunicator = 0xc0;
  static constexpr std::uint32_t kBackwardThread = 2;

  format::TestLedger ledger;

 private:
  bool agent_;
  std::uint64_t next_ = 0;
};

}  // namespace ledger::attribution
