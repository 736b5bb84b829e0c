#include "ledger/format/names.h"

#include <catch2/catch.hpp>

namespace ledger::format {
namespace {

TEST_CASE("a kind's name leads back to the kind") {
  for (unsigned value = 0; value < 256; ++value) {
    const auto kind = static_cast<record::Kind>(value);
    if (KindName(kind).empty()) continue;
    CHECK(KindFromName(KindName(kind)) == kind);
  }
  CHECK(KindName(record::Kind::kBlockAlloc) == "block_alloc");
  CHECK_FALSE(KindFromName("no_such_kind").has_value());
}

TEST_CASE("values from a newer recorder have a name, too") {
  CHECK(MemoryName(static_cast<record::Memory>(200)) == "unknown");
  CHECK(LayerName(static_cast<record::Layer>(200)) == "none");
  CHECK(OperationName(static_cast<record::Operation>(200)) == "unknown");
  CHECK(LossName(static_cast<record::Loss>(15)) == "unknown_loss");
}

}  // namespace
}  // namespace ledger::format
