#include "interpose/record/text_table.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

namespace ledger {
namespace {

std::string Name(std::uint32_t number) { return "name " + std::to_string(number); }

// As core/definitions.cc does, with its lock.
std::uint32_t Put(TextTable& table, const std::string& text) {
  const std::uint32_t id = table.Add(text);
  if (id != 0) table.Publish(id, TextTable::Hash(text));
  return id;
}

std::uint32_t Find(const TextTable& table, const std::string& text) { return table.Find(text, TextTable::Hash(text)); }

TEST_CASE("a table of texts finds everything that is in it, however often it has grown") {
  TextTable table;
  CHECK(Find(table, "nothing is there yet") == 0);
  CHECK(table.resident_bytes() == 0);
  constexpr std::uint32_t kCount = 20'000;
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    REQUIRE(Put(table, Name(i)) == i);
    if ((i & (i - 1)) != 0 && i != kCount) continue;
    for (std::uint32_t j = 1; j <= i; ++j) REQUIRE(Find(table, Name(j)) == j);
    REQUIRE(Find(table, Name(i + 1)) == 0);
  }
  CHECK(table.Text(kCount) == Name(kCount));
}

TEST_CASE("a small table takes a few pages") {
  TextTable table;
  for (std::uint32_t i = 1; i <= 1'000; ++i) Put(table, Name(i));
  CHECK(table.resident_bytes() < 128 * 1024);
}

TEST_CASE("a table that is full takes nothing more, and keeps what it has") {
  TextTable table;
  std::uint32_t count = 0;
  while (Put(table, Name(count + 1)) != 0) ++count;
  CHECK(count == (1u << TextTable::kCapacityLog2) - 1);
  for (std::uint32_t i = 1; i <= count; i += 97) REQUIRE(Find(table, Name(i)) == i);
}

TEST_CASE("others find what is published while the table grows") {
  TextTable table;
  constexpr std::uint32_t kCount = 50'000;
  std::atomic<std::uint32_t> published{0};
  std::atomic<std::uint32_t> missed{0};
  std::vector<std::thread> readers;
  for (std::uint32_t reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      for (std::uint32_t seen = 0, turn = reader; seen < kCount; turn += 7) {
        seen = published.load(std::memory_order_acquire);
        if (seen == 0) continue;
        const std::uint32_t number = turn % seen + 1;
        if (Find(table, Name(number)) != number) ++missed;
      }
    });
  }
  for (std::uint32_t i = 1; i <= kCount; ++i) {
    Put(table, Name(i));
    published.store(i, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(missed == 0);
}

TEST_CASE("scopes that differ in one field are different ones") {
  ScopeTable table;
  const ScopeNode first = {1, 2, 3, 4, record::Layer::kOp, 5, 6};
  std::vector<ScopeNode> nodes(7, first);
  nodes[1].parent = 9;
  nodes[2].name = 9;
  nodes[3].domain = 9;
  nodes[4].source = record::Layer::kAgent;
  nodes[5].flags = 9;
  nodes[6].origin = 9;
  for (const ScopeNode& node : nodes) {
    REQUIRE(table.Find(node, ScopeTable::Hash(node)) == 0);
    table.Publish(table.Add(node), ScopeTable::Hash(node));
  }
  for (std::uint32_t i = 0; i < nodes.size(); ++i) CHECK(table.Find(nodes[i], ScopeTable::Hash(nodes[i])) == i + 1);
}

}  // namespace
}  // namespace ledger
