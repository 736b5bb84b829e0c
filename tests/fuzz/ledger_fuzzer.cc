// Any bytes as a ledger: read, replayed, reported as text and JSON, described record by record.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "ledger/format/ledger_file.h"
#include "ledger/replay/truth.h"
#include "ledger/report/build.h"
#include "ledger/report/describe.h"
#include "ledger/report/json.h"
#include "ledger/report/text.h"

namespace {

using ledger::format::LedgerFile;
namespace record = ledger::record;

constexpr std::uint64_t kMaxDescribed = 64;

bool IsLedger(const std::uint8_t* data, std::size_t size) {
  return size >= record::kHeaderBytes && std::memcmp(data, record::kMagic, sizeof(record::kMagic)) == 0;
}

// Without a magic the bytes are taken for slots behind a good header: few random inputs have a good one.
std::vector<std::byte> WithHeader(const std::uint8_t* data, std::size_t size) {
  record::FileHeader header{};
  std::memcpy(header.magic, record::kMagic, sizeof(header.magic));
  header.version_major = record::kVersionMajor;
  header.header_bytes = record::kHeaderBytes;
  header.record_bytes = record::kRecordBytes;
  header.ticks_source = record::TicksSource::kTsc;
  header.reserved = size / record::kRecordBytes;
  std::vector<std::byte> bytes(record::kHeaderBytes + size);
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (size != 0) std::memcpy(bytes.data() + record::kHeaderBytes, data, size);
  return bytes;
}

void Consume(const LedgerFile& file) {
  const ledger::replay::Truth truth{{{}}, {{"step 0", 0, {{0x1000, 512, 0}}, {}}}};
  const ledger::replay::Analysis analysis(file, ledger::replay::OptionsFor(file, truth));
  const auto run = ledger::report::BuildRun({ledger::report::BuildRank(
      analysis, {.more = CheckTruth(analysis, truth), .at = ledger::report::InstantChoice{}, .device = 0})});
  ledger::report::ToText(run, {});
  ledger::report::ToJson(run, {.blocks = true});
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(file.slots().size(), kMaxDescribed); ++i) {
    ledger::report::DescribeText(file, i);
    ledger::report::DescribeJson(file, i);
  }
  // No account can be below zero, whatever the input: below zero is beyond anything for unsigned numbers.
  for (const std::int8_t device : analysis.replay().Devices()) {
    const auto& bytes = analysis.replay().driver().device(device);
    const std::uint64_t bound = file.slots().size() * ledger::replay::kMaxAllocationBytes;
    if (bytes.held > bound || bytes.segments > bytes.held || bytes.stream_ordered > bound) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  const auto file = IsLedger(data, size) ? LedgerFile::FromBytes({bytes, size}, "fuzz")
                                         : LedgerFile::FromBytes(WithHeader(data, size), "fuzz");
  if (file.ok()) Consume(*file);
  ledger::replay::ParseTruth({reinterpret_cast<const char*>(data), size}, "fuzz").status().IgnoreError();
  return 0;
}
