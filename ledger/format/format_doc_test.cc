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

#define FIELD(layout, field) \
  { #field, offsetof(record::layout, field), sizeof(record::layout::field) }

const Layout kCommit = {"Commit",
                        sizeof(record::Commit),
                        {FIELD(Commit, kind), FIELD(Commit, layer), FIELD(Commit, device), FIELD(Commit, thread)}};
const Layout kTextChunk = {"TextChunk",
                           sizeof(record::TextChunk),
                           {FIELD(TextChunk, commit), FIELD(TextChunk, id), FIELD(TextChunk, total_bytes),
                            FIELD(TextChunk, chunk), FIELD(TextChunk, bytes)}};
const Layout kScopeDefinition = {
    "ScopeDefinition",
    sizeof(record::ScopeDefinition),
    {FIELD(ScopeDefinition, commit), FIELD(ScopeDefinition, ticks), FIELD(ScopeDefinition, id),
     FIELD(ScopeDefinition, parent), FIELD(ScopeDefinition, name), FIELD(ScopeDefinition, domain),
     FIELD(ScopeDefinition, origin), FIELD(ScopeDefinition, source), FIELD(ScopeDefinition, flags),
     FIELD(ScopeDefinition, reserved)}};
const Layout kClockAnchor = {"ClockAnchor",
                             sizeof(record::ClockAnchor),
                             {FIELD(ClockAnchor, commit), FIELD(ClockAnchor, ticks), FIELD(ClockAnchor, monotonic_ns),
                              FIELD(ClockAnchor, realtime_ns), FIELD(ClockAnchor, reserved)}};
const Layout kDeviceInfo = {
    "DeviceInfo",
    sizeof(record::DeviceInfo),
    {FIELD(DeviceInfo, commit), FIELD(DeviceInfo, ticks), FIELD(DeviceInfo, total_bytes), FIELD(DeviceInfo, uuid),
     FIELD(DeviceInfo, name), FIELD(DeviceInfo, pci), FIELD(DeviceInfo, flags), FIELD(DeviceInfo, compute_capability),
     FIELD(DeviceInfo, reserved)}};
const Layout kSetting = {"Setting",
                         sizeof(record::Setting),
                         {FIELD(Setting, commit), FIELD(Setting, ticks), FIELD(Setting, key), FIELD(Setting, value),
                          FIELD(Setting, reserved)}};
const Layout kCommunicatorInfo = {
    "CommunicatorInfo",
    sizeof(record::CommunicatorInfo),
    {FIELD(CommunicatorInfo, commit), FIELD(CommunicatorInfo, ticks), FIELD(CommunicatorInfo, communicator),
     FIELD(CommunicatorInfo, id_hash), FIELD(CommunicatorInfo, nranks), FIELD(CommunicatorInfo, rank),
     FIELD(CommunicatorInfo, parent), FIELD(CommunicatorInfo, name), FIELD(CommunicatorInfo, scope),
     FIELD(CommunicatorInfo, token)}};
const Layout kAllocation = {
    "Allocation",
    sizeof(record::Allocation),
    {FIELD(Allocation, commit), FIELD(Allocation, ticks), FIELD(Allocation, address), FIELD(Allocation, size),
     FIELD(Allocation, device_used), FIELD(Allocation, context), FIELD(Allocation, scope), FIELD(Allocation, owner),
     FIELD(Allocation, call), FIELD(Allocation, result), FIELD(Allocation, memory), FIELD(Allocation, reserved)}};
const Layout kMapping = {"Mapping",
                         sizeof(record::Mapping),
                         {FIELD(Mapping, commit), FIELD(Mapping, ticks), FIELD(Mapping, address), FIELD(Mapping, size),
                          FIELD(Mapping, handle), FIELD(Mapping, offset), FIELD(Mapping, scope), FIELD(Mapping, owner),
                          FIELD(Mapping, reserved)}};
const Layout kDeviceSample = {"DeviceSample",
                              sizeof(record::DeviceSample),
                              {FIELD(DeviceSample, commit), FIELD(DeviceSample, ticks), FIELD(DeviceSample, free_bytes),
                               FIELD(DeviceSample, total_bytes), FIELD(DeviceSample, scope), FIELD(DeviceSample, why),
                               FIELD(DeviceSample, reserved)}};
const Layout kPoolSample = {
    "PoolSample",
    sizeof(record::PoolSample),
    {FIELD(PoolSample, commit), FIELD(PoolSample, ticks), FIELD(PoolSample, pool), FIELD(PoolSample, used_bytes),
     FIELD(PoolSample, reserved_bytes), FIELD(PoolSample, used_high_bytes), FIELD(PoolSample, reserved_high_bytes),
     FIELD(PoolSample, scope), FIELD(PoolSample, reserved)}};
const Layout kBlock = {
    "Block",
    sizeof(record::Block),
    {FIELD(Block, commit), FIELD(Block, ticks), FIELD(Block, address), FIELD(Block, size), FIELD(Block, allocated),
     FIELD(Block, reserved_total), FIELD(Block, scope), FIELD(Block, owner), FIELD(Block, requested)}};
const Layout kBlockOom = {"BlockOom",
                          sizeof(record::BlockOom),
                          {FIELD(BlockOom, commit), FIELD(BlockOom, ticks), FIELD(BlockOom, requested),
                           FIELD(BlockOom, allocated), FIELD(BlockOom, reserved_total), FIELD(BlockOom, device_free),
                           FIELD(BlockOom, device_total), FIELD(BlockOom, scope), FIELD(BlockOom, reserved)}};
const Layout kBlockDetail = {"BlockDetail",
                             sizeof(record::BlockDetail),
                             {FIELD(BlockDetail, commit), FIELD(BlockDetail, ticks), FIELD(BlockDetail, address),
                              FIELD(BlockDetail, size), FIELD(BlockDetail, requested), FIELD(BlockDetail, stream),
                              FIELD(BlockDetail, scope), FIELD(BlockDetail, reserved)}};
const Layout kSegment = {
    "Segment",
    sizeof(record::Segment),
    {FIELD(Segment, commit), FIELD(Segment, ticks), FIELD(Segment, address), FIELD(Segment, size),
     FIELD(Segment, stream), FIELD(Segment, pool_id), FIELD(Segment, scope), FIELD(Segment, reserved)}};
const Layout kRange = {"Range",
                       sizeof(record::Range),
                       {FIELD(Range, commit), FIELD(Range, ticks), FIELD(Range, scope), FIELD(Range, text),
                        FIELD(Range, id), FIELD(Range, payload), FIELD(Range, domain), FIELD(Range, reserved)}};
const Layout kCollective = {
    "Collective",
    sizeof(record::Collective),
    {FIELD(Collective, commit), FIELD(Collective, ticks), FIELD(Collective, send), FIELD(Collective, receive),
     FIELD(Collective, count), FIELD(Collective, communicator), FIELD(Collective, stream), FIELD(Collective, scope),
     FIELD(Collective, operation), FIELD(Collective, element_bytes), FIELD(Collective, datatype),
     FIELD(Collective, peer_or_root)}};
const Layout kTag = {"Tag",
                     sizeof(record::Tag),
                     {FIELD(Tag, commit), FIELD(Tag, ticks), FIELD(Tag, address), FIELD(Tag, size), FIELD(Tag, text),
                      FIELD(Tag, scope), FIELD(Tag, reserved)}};
const Layout kValueRead = {
    "ValueRead",
    sizeof(record::ValueRead),
    {FIELD(ValueRead, commit), FIELD(ValueRead, ticks), FIELD(ValueRead, address), FIELD(ValueRead, size),
     FIELD(ValueRead, text), FIELD(ValueRead, scope), FIELD(ValueRead, reserved)}};
const Layout kSavedTensor = {
    "SavedTensor",
    sizeof(record::SavedTensor),
    {FIELD(SavedTensor, commit), FIELD(SavedTensor, ticks), FIELD(SavedTensor, address),
     FIELD(SavedTensor, storage_bytes), FIELD(SavedTensor, tensor_bytes), FIELD(SavedTensor, sequence),
     FIELD(SavedTensor, scope), FIELD(SavedTensor, flags), FIELD(SavedTensor, reserved)}};
const Layout kPhase = {"Phase",
                       sizeof(record::Phase),
                       {FIELD(Phase, commit), FIELD(Phase, ticks), FIELD(Phase, step), FIELD(Phase, phase),
                        FIELD(Phase, reserved), FIELD(Phase, scope), FIELD(Phase, text), FIELD(Phase, padding)}};
const Layout kName = {"Name",
                      sizeof(record::Name),
                      {FIELD(Name, commit), FIELD(Name, ticks), FIELD(Name, address), FIELD(Name, bytes),
                       FIELD(Name, belongs_to), FIELD(Name, elements), FIELD(Name, text), FIELD(Name, key),
                       FIELD(Name, category), FIELD(Name, element_bytes), FIELD(Name, flags), FIELD(Name, reserved)}};
const Layout kFileHeader = {"FileHeader",
                            sizeof(record::FileHeader),
                            {FIELD(FileHeader, magic),
                             FIELD(FileHeader, version_major),
                             FIELD(FileHeader, version_minor),
                             FIELD(FileHeader, header_bytes),
                             FIELD(FileHeader, record_bytes),
                             FIELD(FileHeader, flags),
                             FIELD(FileHeader, pid),
                             FIELD(FileHeader, parent_pid),
                             FIELD(FileHeader, rank),
                             FIELD(FileHeader, local_rank),
                             FIELD(FileHeader, world_size),
                             FIELD(FileHeader, ticks_source),
                             FIELD(FileHeader, load_ticks),
                             FIELD(FileHeader, load_monotonic_ns),
                             FIELD(FileHeader, load_realtime_ns),
                             FIELD(FileHeader, open_ticks),
                             FIELD(FileHeader, open_monotonic_ns),
                             FIELD(FileHeader, open_realtime_ns),
                             FIELD(FileHeader, reserved),
                             FIELD(FileHeader, clean_end),
                             FIELD(FileHeader, end_ticks),
                             FIELD(FileHeader, recorder_peak_rss_bytes),
                             FIELD(FileHeader, losses),
                             FIELD(FileHeader, recorder_version),
                             FIELD(FileHeader, host),
                             FIELD(FileHeader, program),
                             FIELD(FileHeader, run_id)}};

#undef FIELD

const Layout* const kLayouts[] = {
    &kCommit,           &kTextChunk,   &kScopeDefinition, &kClockAnchor,  &kDeviceInfo, &kSetting,
    &kCommunicatorInfo, &kAllocation,  &kMapping,         &kDeviceSample, &kPoolSample, &kBlock,
    &kBlockOom,         &kBlockDetail, &kSegment,         &kRange,        &kCollective, &kTag,
    &kValueRead,        &kSavedTensor, &kPhase,           &kName,         &kFileHeader};

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
  for (const Layout* layout : kLayouts) {
    INFO(layout->name);
    const auto rows = TableBelow(absl::StrCat("`", layout->name, "`"));
    REQUIRE(rows.size() == layout->fields.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      INFO("row " << i << ": " << rows[i][2]);
      CHECK(rows[i][0] == absl::StrCat(layout->fields[i].offset));
      CHECK(rows[i][1] == absl::StrCat(layout->fields[i].bytes));
      CHECK(rows[i][2] == layout->fields[i].name);
      CHECK_FALSE(rows[i][3].empty());
    }
  }
}

// So that a field which is added to record.h cannot be missing in the list above.
TEST_CASE("the fields of a layout leave no gap") {
  for (const Layout* layout : kLayouts) {
    INFO(layout->name);
    std::size_t at = 0;
    for (const FieldPlace& field : layout->fields) {
      INFO(field.name);
      CHECK(field.offset == at);
      at = field.offset + field.bytes;
    }
    CHECK(at == layout->bytes);
  }
}

TEST_CASE("docs/format.md has every kind with its layout") {
  std::map<std::string, std::string> kinds;
  for (const Row& row : TableBelow("Kinds")) {
    CHECK_FALSE(row[3].empty());
    kinds[row[0]] = row[1];
    bool known_layout = false;
    for (const Layout* layout : kLayouts) known_layout = known_layout || layout->name == row[2];
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
