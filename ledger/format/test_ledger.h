// A ledger made of typed records, without a job: for tests, fuzzing and benchmarks.
//
//     TestLedger ledger;
//     ledger.Alloc(0, 0x1000, 2 << 20, {.owner = "libc10_cuda.so"});
//     ledger.BlockAlloc(0, 0x1000, 512);
//     auto file = ledger.Read();
//
// Block events carry the totals that an honest allocator would report; a test that wants a liar edits the record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "interpose/record/record.h"
#include "ledger/format/ledger_file.h"
#include "ledger/format/slot.h"

namespace ledger::format {

class TestLedger {
 public:
  struct AllocOptions {
    absl::string_view owner = "libc10_cuda.so";
    absl::string_view call = "cudaMalloc";
    record::Memory memory = record::Memory::kLinear;
    record::Layer layer = record::Layer::kRuntime;
    std::uint32_t scope = 0;
    std::uint64_t used = 0;     // what the driver says after the call
    std::uint64_t context = 0;  // pool, stream, communicator
    std::uint16_t result = 0;
  };

  TestLedger();

  record::FileHeader& header() { return header_; }

  std::uint32_t Text(absl::string_view text);
  std::uint32_t Scope(std::uint32_t parent, absl::string_view name);
  void Setting(absl::string_view key, absl::string_view value);
  void Device(std::int8_t device, std::uint64_t total, absl::string_view name, bool simulated);

  void Alloc(std::int8_t device, std::uint64_t address, std::uint64_t size, const AllocOptions& options);
  void Alloc(std::int8_t device, std::uint64_t address, std::uint64_t size) {
    Alloc(device, address, size, AllocOptions());
  }
  void Free(std::int8_t device, std::uint64_t address, record::Memory memory = record::Memory::kLinear);
  // The free before it failed.
  void FreeFailed(std::int8_t device, std::uint64_t address, record::Memory memory);
  void AllocFailed(std::int8_t device, std::uint64_t size, const AllocOptions& options);
  void HandleCreate(std::int8_t device, std::uint64_t handle, std::uint64_t size, const AllocOptions& options);
  void HandleEvent(record::Kind kind, std::int8_t device, std::uint64_t handle);
  void Map(std::int8_t device, std::uint64_t address, std::uint64_t size, std::uint64_t handle);
  void Unmap(std::int8_t device, std::uint64_t address, std::uint64_t size);
  void DeviceSample(std::int8_t device, std::uint64_t used, std::uint64_t total);
  void PoolSample(std::int8_t device, std::uint64_t pool, std::uint64_t used, std::uint64_t reserved);

  void BlockAlloc(std::int8_t device, std::uint64_t address, std::uint64_t size, std::uint32_t scope = 0,
                  std::uint64_t requested = 0);
  void BlockFree(std::int8_t device, std::uint64_t address, std::uint64_t size, std::uint32_t scope = 0);
  void BlockOom(std::int8_t device, std::uint64_t requested, std::uint64_t device_free, std::uint64_t device_total,
                std::uint32_t scope = 0);

  void Mark(absl::string_view name, std::uint32_t scope = 0);
  void ValueRead(std::int8_t device, absl::string_view place);
  void Communicator(std::int8_t device, std::uint64_t communicator, absl::string_view name, std::uint32_t nranks,
                    std::uint64_t token = 0);
  // The process group of the communicator that has the handle now.
  void ProcessGroup(std::uint64_t communicator, absl::string_view name, absl::string_view description,
                    std::uint32_t ranks, std::int32_t first_rank, std::int32_t rank_stride);

  // Any record: fills in the commit word and, except in texts, the ticks. Returns its slot.
  template <typename Layout>
  std::uint64_t Add(record::Kind kind, std::int8_t device, Layout record, record::Layer layer = record::Layer::kNone) {
    record.commit = {static_cast<std::uint16_t>(kind), layer, device, 1};
    if constexpr (requires { record.ticks; }) record.ticks = now_ += 1000;
    return Append(&record);
  }

  // A slot that was reserved and never committed.
  void AddUncommitted();

  std::uint64_t slots() const { return slots_.size(); }
  template <typename Layout>
  Layout& At(std::uint64_t slot) {
    return const_cast<Layout&>(slots_[slot].As<Layout>());
  }

  std::vector<std::byte> Bytes() const;
  absl::StatusOr<LedgerFile> Read() const { return LedgerFile::FromBytes(Bytes(), "test.ledger"); }
  bool WriteTo(const std::string& path) const;

 private:
  std::uint64_t Append(const void* record);
  record::Allocation MakeAllocation(std::uint64_t address, std::uint64_t size, const AllocOptions& options);
  void CountReserved(std::int8_t device, std::int64_t change, absl::string_view owner);

  record::FileHeader header_{};
  std::vector<Slot> slots_;
  std::map<std::string, std::uint32_t, std::less<>> texts_;
  std::uint32_t scopes_ = 0;
  std::uint64_t now_;
  // What an honest allocator would say.
  std::map<std::int8_t, std::uint64_t> allocated_, reserved_;
  std::map<std::uint64_t, std::uint64_t> segments_;  // address or handle → size, of the caching allocator alone
};

}  // namespace ledger::format
