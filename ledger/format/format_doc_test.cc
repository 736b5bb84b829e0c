// docs/format.md against record.h: every field of every layout, every kind, every loss.
#include <catch2/catch.hpp>
#include <cstddef>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "interpose/record/record.h"
#include "ledger/format/names.h"

namespace ledger::format {
namespace {

struct FieldPlace {
  std::string name;
  std::size_t offset, bytes;
};
struct Layout {
  std::string name;
  std::size_t bytes;
  std::vector<FieldPlace> fields;
};

// LAYOUT(name, fields...): one FIELD for each.
#define PARENTHESES ()
#define EXPAND(...) EXPAND3(EXPAND3(EXPAND3(__VA_ARGS__)))
#define EXPAND3(...) EXPAND2(EXPAND2(EXPAND2(__VA_ARGS__)))
#define EXPAND2(...) EXPAND1(EXPAND1(EXPAND1(__VA_ARGS__)))
#define EXPAND1(...) __VA_ARGS__
#define FIELD(layout, field) {#field, offsetof(record::layout, field), sizeof(record::layout::field)},
#define FIELDS(layout, field, ...) FIELD(layout, field) __VA_OPT__(MORE_FIELDS PARENTHESES(layout, __VA_ARGS__))
#define MORE_FIELDS() FIELDS
// clang-format off
#define LAYOUT(layout, ...) {#layout, sizeof(record::layout), {EXPAND(FIELDS(layout, __VA_ARGS__))}}
// clang-format on

const Layout kLayouts[] = {
    LAYOUT(Commit, kind, layer, device, thread),
    LAYOUT(TextChunk, commit, id, total_bytes, chunk, bytes),
    LAYOUT(ScopeDefinition, commit, ticks, id, parent, name, domain, origin, source, flags, reserved),
    LAYOUT(ClockAnchor, commit, ticks, monotonic_ns, realtime_ns, reserved),
    LAYOUT(DeviceInfo, commit, ticks, total_bytes, uuid, name, pci, flags, compute_capability, reserved),
    LAYOUT(Setting, commit, ticks, key, value, reserved),
    LAYOUT(CommunicatorInfo, commit, ticks, communicator, id_hash, nranks, rank, parent, name, scope, token),
    LAYOUT(Allocation, commit, ticks, address, size, device_used, context, scope, owner, call, result, memory,
           reserved),
    LAYOUT(Mapping, commit, ticks, address, size, handle, offset, scope, owner, reserved),
    LAYOUT(DeviceSample, commit, ticks, free_bytes, total_bytes, scope, why, reserved),
    LAYOUT(PoolSample, commit, ticks, pool, used_bytes, reserved_bytes, used_high_bytes, reserved_high_bytes, scope,
           reserved),
    LAYOUT(Block, commit, ticks, address, size, allocated, reserved_total, scope, owner, requested),
    LAYOUT(BlockOom, commit, ticks, requested, allocated, reserved_total, device_free, device_total, scope, reserved),
    LAYOUT(BlockDetail, commit, ticks, address, size, requested, stream, scope, reserved),
    LAYOUT(Segment, commit, ticks, address, size, stream, pool_id, scope, reserved),
    LAYOUT(Range, commit, ticks, scope, text, id, payload, domain, reserved),
    LAYOUT(ProcessGroupInfo, commit, ticks, communicator, name, description, ranks, rank, first_rank, rank_stride,
           scope, reserved),
    LAYOUT(Collective, commit, ticks, send, receive, count, communicator, stream, scope, operation, element_bytes,
           datatype, peer_or_root),
    LAYOUT(Tag, commit, ticks, address, size, text, scope, reserved),
    LAYOUT(ValueRead, commit, ticks, address, size, text, scope, reserved),
    LAYOUT(SavedTensor, commit, ticks, address, storage_bytes, tensor_bytes, sequence, scope, flags, reserved),
    LAYOUT(Phase, commit, ticks, step, phase, reserved, scope, text, padding),
    LAYOUT(Name, commit, ticks, address, bytes, belongs_to, elements, text, key, category, element_bytes, flags,
           reserved),
    LAYOUT(FileHeader, magic, version_major, version_minor, header_bytes, record_bytes, flags, pid, parent_pid, rank,
           local_rank, world_size, ticks_source, load_ticks, load_monotonic_ns, load_realtime_ns, open_ticks,
           open_monotonic_ns, open_realtime_ns, reserved, clean_end, end_ticks, recorder_peak_rss_bytes, losses,
           recorder_version, host, program, run_id),
};

#undef LAYOUT
#undef MORE_FIELDS
#undef FIELDS
#undef FIELD
#undef EXPAND1
#undef EXPAND2
#undef EXPAND3
#undef EXPAND
#undef PARENTHESES

// Rows of a table: the cells, without blanks and backquotes.
using Row = std::vector<std::string>;

// The first table below a heading.
std::vector<Row> TableBelow(const std::string& heading) {
  std::ifstream file(LEDGER_SOURCE_DIR "/docs/format.md");
  std::vector<Row> rows;
  bool below = false;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] == '#') {
      if (below) break;
      below = absl::StripAsciiWhitespace(line.substr(line.find_first_not_of('#'))) == heading;
    }
    if (!below) continue;
    if (line.empty() || line[0] != '|') {
      if (!rows.empty()) break;
      continue;
    }
    Row row;
    for (absl::string_view cell : absl::StrSplit(line, '|')) {
      cell = absl::StripAsciiWhitespace(cell);
      absl::ConsumePrefix(&cell, "`");
      absl::ConsumeSuffix(&cell, "`");
      row.emplace_back(cell);
    }
    row.erase(row.begin());
    rows.push_back(row);
  }
  if (rows.size() < 2) return {};
  rows.erase(rows.begin(), rows.begin() + 2);  // the head
  return rows;
}

TEST_CASE("docs/format.md has every field of every layout at its place") {
  for (const Layout& layout : kLayouts) {
    INFO(layout.name);
    const auto rows = TableBelow(absl::StrCat("`", layout.name, "`"));
    REQUIRE(rows.size() == layout.fields.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO("row " << i << ": " << rows[i][2]);
      CHECK(rows[i][0] == absl::StrCat(layout.fields[i].offset));
      CHECK(rows[i][1] == absl::StrCat(layout.fields[i].bytes));
      CHECK(rows[i][2] == layout.fields[i].name);
      CHECK_FALSE(rows[i][3].empty());
    }
  }
}

// So that a field which is added to record.h cannot be missing in the list above.
TEST_CASE("the fields of a layout leave no gap") {
  for (const Layout& layout : kLayouts) {
    INFO(layout.name);
    std::size_t at = 0;
    for (const FieldPlace& field : layout.fields) {
      INFO(field.name);
      CHECK(field.offset == at);
      at = field.offset + field.bytes;
    }
    CHECK(at == layout.bytes);
  }
}

TEST_CASE("docs/format.md has every kind with its layout") {
  std::map<std::string, std::string> kinds;
  for (const Row& row : TableBelow("Kinds")) {
    CHECK_FALSE(row[3].empty());
    kinds[row[0]] = row[1];
    bool known_layout = false;
    for (const Layout& layout : kLayouts) known_layout = known_layout || layout.name == row[2];
    INFO("layout " << row[2]);
    CHECK(known_layout);
  }
  constexpr unsigned kAllKinds = 1 << 16;
  std::size_t named = 0;
  for (unsigned kind = 0; kind < kAllKinds; ++kind) {
    const auto name = KindName(static_cast<record::Kind>(kind));
    if (name.empty()) continue;
    ++named;
    INFO("kind " << kind);
    CHECK(kinds[absl::StrCat(kind)] == name);
  }
  CHECK(kinds.size() == named);
}

TEST_CASE("docs/format.md has every loss") {
  const auto rows = TableBelow("Losses");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i][0] == absl::StrCat(i));
    CHECK(rows[i][1] == LossName(static_cast<record::Loss>(i)));
    CHECK(rows[i][2] == LossMeaning(static_cast<record::Loss>(i)));
  }
  CHECK(LossName(static_cast<record::Loss>(rows.size())) == "unknown_loss");
}

}  // namespace
}  // namespace ledger::format
