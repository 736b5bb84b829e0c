#include "ledger/replay/physical_memory.h"

#include <catch2/catch.hpp>

namespace ledger::replay {
namespace {

using Object = PhysicalMemory::Object;

Object Make(std::uint64_t handle, std::uint64_t slot, std::uint64_t bytes = 100) {
  Object object;
  object.handle = handle;
  object.slot = slot;
  object.bytes = bytes;
  object.device = 0;
  return object;
}

TEST_CASE("physical memory lives as long as a handle or a mapping") {
  PhysicalMemory memory;
  std::vector<Object> died;
  REQUIRE(memory.Create(Make(7, 1), died));
  SECTION("released and never mapped") {
    CHECK(memory.Release(7, died));
    CHECK(died.size() == 1);
  }
  SECTION("released while mapped, then unmapped") {
    CHECK(memory.Map(0x1000, 0x100, 7, died));
    CHECK(memory.Release(7, died));
    CHECK(died.empty());
    CHECK(memory.Unmap(0x1000, 0x100, died));
    REQUIRE(died.size() == 1);
    CHECK(died[0].slot == 1);
  }
  SECTION("unmapped first") {
    CHECK(memory.Map(0x1000, 0x100, 7, died));
    CHECK(memory.Unmap(0x1000, 0x100, died));
    CHECK(died.empty());
    CHECK(memory.Release(7, died));
    CHECK(died.size() == 1);
  }
  SECTION("retained once more") {
    CHECK(memory.Retain(7));
    CHECK(memory.Release(7, died));
    CHECK(died.empty());
    CHECK(memory.Release(7, died));
    CHECK(died.size() == 1);
  }
  SECTION("mapped twice") {
    CHECK(memory.Map(0x1000, 0x100, 7, died));
    CHECK(memory.Map(0x2000, 0x100, 7, died));
    CHECK(memory.Release(7, died));
    CHECK(memory.Unmap(0x1000, 0x100, died));
    CHECK(died.empty());
    CHECK(memory.Unmap(0x2000, 0x100, died));
    CHECK(died.size() == 1);
  }
}

TEST_CASE("a handle's value may come back while a mapping keeps the old memory alive") {
  PhysicalMemory memory;
  std::vector<Object> died;
  memory.Create(Make(7, 1), died);
  memory.Map(0x1000, 0x100, 7, died);
  memory.Release(7, died);
  CHECK(memory.Create(Make(7, 2), died));
  CHECK(died.empty());
  CHECK(memory.objects().size() == 2);
  memory.Unmap(0x1000, 0x100, died);
  REQUIRE(died.size() == 1);
  CHECK(died[0].slot == 1);
  CHECK(memory.Release(7, died));
  REQUIRE(died.size() == 2);
  CHECK(died[1].slot == 2);
}

TEST_CASE("memory that is only mapped can be retained again") {
  PhysicalMemory memory;
  std::vector<Object> died;
  memory.Create(Make(7, 1), died);
  memory.Map(0x1000, 0x100, 7, died);
  memory.Release(7, died);
  CHECK(memory.Retain(7));
  memory.Unmap(0x1000, 0x100, died);
  CHECK(died.empty());
  CHECK(memory.Release(7, died));
  CHECK(died.size() == 1);
}

TEST_CASE("one unmap may end several mappings, or a part of one") {
  PhysicalMemory memory;
  std::vector<Object> died;
  memory.Create(Make(1, 1), died);
  memory.Create(Make(2, 2), died);
  memory.Map(0x1000, 0x1000, 1, died);
  memory.Map(0x2000, 0x1000, 2, died);
  memory.Release(1, died);
  memory.Release(2, died);
  SECTION("both at once") {
    CHECK(memory.Unmap(0x1000, 0x2000, died));
    CHECK(died.size() == 2);
  }
  SECTION("across the border") {
    CHECK(memory.Unmap(0x1800, 0x1000, died));
    CHECK(died.empty());
    CHECK(memory.Mappings().size() == 2);
    CHECK(memory.Unmap(0x1000, 0x800, died));
    CHECK(died.size() == 1);
    CHECK(memory.Unmap(0x2800, 0x800, died));
    CHECK(died.size() == 2);
  }
  SECTION("out of the middle") {
    CHECK(memory.Unmap(0x1400, 0x100, died));
    CHECK(memory.Mappings().size() == 3);
    CHECK(memory.Unmap(0x1000, 0x1000, died));
    CHECK(died.size() == 1);
  }
}

TEST_CASE("what cannot be is refused") {
  PhysicalMemory memory;
  std::vector<Object> died;
  CHECK_FALSE(memory.Retain(7));
  CHECK_FALSE(memory.Release(7, died));
  CHECK_FALSE(memory.Map(0x1000, 0x100, 7, died));
  CHECK_FALSE(memory.Unmap(0x1000, 0x100, died));
  memory.Create(Make(7, 1), died);
  CHECK_FALSE(memory.Map(0x1000, 0, 7, died));
  CHECK_FALSE(memory.Map(~std::uint64_t{0}, 2, 7, died));
  CHECK_FALSE(memory.Create(Make(7, 2), died));
  CHECK(died.size() == 1);
  memory.Map(0x1000, 0x100, 7, died);
  CHECK_FALSE(memory.Map(0x1000, 0x100, 7, died));
  CHECK(memory.Mappings().size() == 1);
}

TEST_CASE("a reset takes the device's memory and mappings, and no other's") {
  PhysicalMemory memory;
  std::vector<Object> died;
  Object other = Make(8, 2);
  other.device = 1;
  memory.Create(Make(7, 1), died);
  memory.Create(other, died);
  memory.Map(0x1000, 0x100, 7, died);
  memory.Map(0x2000, 0x100, 8, died);
  memory.Reset(0, died);
  CHECK(died.size() == 1);
  CHECK(memory.objects().size() == 1);
  CHECK(memory.Mappings().size() == 1);
  CHECK_FALSE(memory.Release(7, died));
}

}  // namespace
}  // namespace ledger::replay
