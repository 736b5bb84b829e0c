// Random ledgers against an oracle that keeps everything in ordered maps and sums afresh at every event.
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "ledger/format/test_ledger.h"
#include "ledger/replay/analysis.h"

namespace ledger::replay {
namespace {

using format::TestLedger;

struct Oracle {
  std::map<std::uint64_t, std::uint64_t> blocks;    // address → bytes
  std::map<std::uint64_t, std::uint64_t> segments;  // linear ones
  struct Physical {
    std::uint64_t bytes;
    std::uint64_t references;
    std::uint64_t mappings;
  };
  std::vector<Physical> physical;
  std::map<std::uint64_t, std::size_t> handles;
  std::map<std::uint64_t, std::size_t> mapped;  // address of a 2 MiB page → object

  std::uint64_t Allocated() const {
    std::uint64_t sum = 0;
    for (const auto& [address, bytes] : blocks) sum += bytes;
    return sum;
  }
  std::uint64_t Reserved() const {
    std::uint64_t sum = 0;
    for (const auto& [address, bytes] : segments) sum += bytes;
    for (const Physical& object : physical) {
      if (object.references + object.mappings != 0) sum += object.bytes;
    }
    return sum;
  }
};

struct Expected {
  std::uint64_t allocated_peak = 0, reserved_peak = 0;
  std::uint64_t allocated_slot = 0, reserved_slot = 0;
  std::map<std::uint64_t, std::uint64_t> blocks_at_peak;
};

constexpr std::uint64_t kPage = 2 << 20;

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  void Run(int events) {
    for (int i = 0; i < events; ++i) {
      Step();
      Observe();
    }
  }

  TestLedger ledger;
  Oracle oracle;
  Expected expected;

 private:
  std::uint64_t Pick(std::uint64_t below) { return random_() % below; }

  void Step() {
    switch (Pick(9)) {
      case 0:
      case 1:
      case 2:
        return AllocateBlock();
      case 3:
      case 4:
        return FreeBlock();
      case 5:
        return Pick(2) == 0 ? AllocateSegment() : FreeSegment();
      case 6:
        return Create();
      case 7:
        return Pick(2) == 0 ? Map() : Unmap();
      default:
        return Pick(3) == 0 ? Retain() : Release();
    }
  }

  void AllocateBlock() {
    const std::uint64_t address = 0x1000 * (1 + Pick(64));
    if (oracle.blocks.count(address) != 0) return FreeBlock();
    const std::uint64_t bytes = 512 * (1 + Pick(100));
    oracle.blocks[address] = bytes;
    ledger.BlockAlloc(0, address, bytes);
  }

  void FreeBlock() {
    if (oracle.blocks.empty()) return;
    auto block = std::next(oracle.blocks.begin(), static_cast<std::ptrdiff_t>(Pick(oracle.blocks.size())));
    ledger.BlockFree(0, block->first, block->second);
    oracle.blocks.erase(block);
  }

  void AllocateSegment() {
    const std::uint64_t address = 0x100000000 + kPage * Pick(32);
    if (oracle.segments.count(address) != 0) return;
    oracle.segments[address] = kPage;
    ledger.Alloc(0, address, kPage);
  }

  void FreeSegment() {
    if (oracle.segments.empty()) return;
    auto segment = std::next(oracle.segments.begin(), static_cast<std::ptrdiff_t>(Pick(oracle.segments.size())));
    ledger.Free(0, segment->first);
    oracle.segments.erase(segment);
  }

  // Handle values come back as soon as their last reference is gone, as the driver's do.
  void Create() {
    const std::uint64_t handle = 1 + Pick(8);
    const auto known = oracle.handles.find(handle);
    if (known != oracle.handles.end() && oracle.physical[known->second].references != 0) return;
    oracle.handles[handle] = oracle.physical.size();
    oracle.physical.push_back({kPage, 1, 0});
    ledger.HandleCreate(0, handle, kPage, {});
  }

  void Retain() {
    const std::uint64_t handle = 1 + Pick(8);
    const auto known = oracle.handles.find(handle);
    if (known == oracle.handles.end() || oracle.physical[known->second].references == 0) return;
    ++oracle.physical[known->second].references;
    ledger.HandleEvent(record::Kind::kHandleRetain, 0, handle);
  }

  void Release() {
    const std::uint64_t handle = 1 + Pick(8);
    const auto known = oracle.handles.find(handle);
    if (known == oracle.handles.end() || oracle.physical[known->second].references == 0) return;
    --oracle.physical[known->second].references;
    ledger.HandleEvent(record::Kind::kHandleRelease, 0, handle);
  }

  void Map() {
    const std::uint64_t handle = 1 + Pick(8);
    const auto known = oracle.handles.find(handle);
    if (known == oracle.handles.end() || oracle.physical[known->second].references == 0) return;
    const std::uint64_t address = 0x200000000 + kPage * Pick(16);
    if (oracle.mapped.count(address) != 0) return;
    oracle.mapped[address] = known->second;
    ++oracle.physical[known->second].mappings;
    ledger.Map(0, address, kPage, handle);
  }

  void Unmap() {
    const std::uint64_t first = Pick(16), pages = 1 + Pick(3);
    bool any = false;
    for (std::uint64_t page = first; page < first + pages; ++page) {
      const auto mapping = oracle.mapped.find(0x200000000 + kPage * page);
      if (mapping == oracle.mapped.end()) continue;
      any = true;
      --oracle.physical[mapping->second].mappings;
      oracle.mapped.erase(mapping);
    }
    if (any) ledger.Unmap(0, 0x200000000 + kPage * first, kPage * pages);
  }

  void Observe() {
    const std::uint64_t slot = ledger.slots() - 1;
    if (const std::uint64_t now = oracle.Allocated(); now > expected.allocated_peak) {
      expected.allocated_peak = now;
      expected.allocated_slot = slot;
      expected.blocks_at_peak = oracle.blocks;
    }
    if (const std::uint64_t now = oracle.Reserved(); now > expected.reserved_peak) {
      expected.reserved_peak = now;
      expected.reserved_slot = slot;
    }
  }

  std::mt19937 random_;
};

TEST_CASE("random ledgers have the peaks, instants and live sets of a brute-force replay") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Generator generator(seed);
    generator.Run(600);
    const auto file = generator.ledger.Read();
    REQUIRE(file.ok());
    const Analysis analysis(*file, {});
    CHECK(analysis.replay().anomalies().Total() == 0);
    REQUIRE(analysis.devices().size() == 1);
    const DeviceAnalysis& device = analysis.devices()[0];
    CHECK(device.allocated.peak.bytes == generator.expected.allocated_peak);
    CHECK(device.allocated.peak.slot == generator.expected.allocated_slot);
    CHECK(device.reserved.peak.bytes == generator.expected.reserved_peak);
    CHECK(device.reserved.peak.slot == generator.expected.reserved_slot);
    std::map<std::uint64_t, std::uint64_t> live;
    for (const LiveBlock& block : device.allocated.snapshot.blocks) live[block.address] = block.bytes;
    CHECK(live == generator.expected.blocks_at_peak);
    CHECK(analysis.replay().driver().device(0).segments == generator.oracle.Reserved());
  }
}

}  // namespace
}  // namespace ledger::replay
