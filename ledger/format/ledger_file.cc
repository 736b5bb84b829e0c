#include "ledger/format/ledger_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ledger/format/names.h"

namespace ledger::format {
namespace {

using record::FileHeader;
using record::Kind;

template <std::size_t kSize>
std::string FixedText(const char (&text)[kSize]) {
  return std::string(text, strnlen(text, kSize));
}

absl::Status Corrupt(const std::string& path, std::size_t offset, const std::string& what) {
  return absl::DataLossError(absl::StrCat(path, ":", offset, ": ", what));
}

absl::Status CheckHeader(const FileHeader& header, std::size_t file_bytes, const std::string& path) {
  if (std::memcmp(header.magic, record::kMagic, sizeof(header.magic)) != 0) {
    const absl::string_view expected(record::kMagic, sizeof(record::kMagic));
    const absl::string_view got(header.magic, sizeof(header.magic));
    return Corrupt(path, 0,
                   absl::StrCat("expected the magic \"", expected, "\", got \"", absl::CHexEscape(got),
                                "\"; this is not a ledger, or its process died before it could write the header"));
  }
  if (header.version_major != record::kVersionMajor) {
    return Corrupt(path, offsetof(FileHeader, version_major),
                   absl::StrCat("expected format version ", record::kVersionMajor, ".x, got ", header.version_major,
                                ".", header.version_minor, "; read it with the gpuledger of the recorder's release"));
  }
  if (header.header_bytes < sizeof(FileHeader) || header.header_bytes % record::kRecordBytes != 0 ||
      header.header_bytes > file_bytes) {
    return Corrupt(path, offsetof(FileHeader, header_bytes),
                   absl::StrCat("expected a header of ", record::kHeaderBytes, " bytes, got ", header.header_bytes,
                                " in a file of ", file_bytes, "; the file is damaged"));
  }
  if (header.record_bytes != record::kRecordBytes) {
    return Corrupt(path, offsetof(FileHeader, record_bytes),
                   absl::StrCat("expected records of ", record::kRecordBytes, " bytes, got ", header.record_bytes,
                                "; the file is damaged"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FileHeader> HeaderOf(absl::Span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < sizeof(FileHeader)) {
    return Corrupt(
        path, bytes.size(),
        absl::StrCat("expected a header of ", record::kHeaderBytes, " bytes, the file ends at ", bytes.size(),
                     "; its process died before it could write one, or the copy is not complete"));
  }
  FileHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const absl::Status status = CheckHeader(header, bytes.size(), path);
  if (!status.ok()) return status;
  return header;
}

}  // namespace

absl::StatusOr<LedgerFile> LedgerFile::Open(const std::string& path) {
  auto mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  auto file = FromMapping(mapped->bytes(), path);
  if (file.ok()) file->file_ = *std::move(mapped);  // the mapping's address stays
  return file;
}

absl::StatusOr<LedgerFile> LedgerFile::FromBytes(absl::Span<const std::byte> bytes, const std::string& name) {
  // Slots have an alignment; an arbitrary buffer has none.
  std::vector<Slot> copy(bytes.size() / sizeof(Slot) + 1);
  if (!bytes.empty()) std::memcpy(static_cast<void*>(copy.data()), bytes.data(), bytes.size());
  auto file = FromMapping({reinterpret_cast<const std::byte*>(copy.data()), bytes.size()}, name);
  if (file.ok()) file->copy_ = std::move(copy);
  return file;
}

absl::StatusOr<FileHeader> LedgerFile::ReadHeader(const std::string& path) {
  const auto mapped = MappedFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  return HeaderOf(mapped->bytes(), path);
}

absl::StatusOr<LedgerFile> LedgerFile::FromMapping(absl::Span<const std::byte> bytes, const std::string& path) {
  const auto header = HeaderOf(bytes, path);
  if (!header.ok()) return header.status();
  LedgerFile file(*header);
  file.path_ = path;
  file.FindSlots(bytes);
  file.ReadDefinitions();
  return file;
}

void LedgerFile::FindSlots(absl::Span<const std::byte> bytes) {
  const auto* first = reinterpret_cast<const Slot*>(bytes.data() + header_.header_bytes);
  const std::uint64_t present = (bytes.size() - header_.header_bytes) / record::kRecordBytes;
  std::uint64_t count = std::min(present, header_.reserved);
  counts_.cut_off = header_.reserved - count;
  // A machine that went down may have written slots and not yet the header's counter.
  while (count < present && first[count].committed()) ++count;
  slots_ = {first, static_cast<std::size_t>(count)};
}

void LedgerFile::ReadDefinitions() {
  texts_ = TextTable(slots_.size());
  scopes_ = ScopeTable(slots_.size());
  for (std::uint64_t i = 0; i < slots_.size(); ++i) {
    const Slot& slot = slots_[i];
    if (!slot.committed()) {
      ++counts_.uncommitted;
      continue;
    }
    ++counts_.committed;
    // Nearly every record is a block or a range; leave them at once.
    switch (slot.kind()) {
      case Kind::kBlockAlloc:
        ++counts_.blocks;
        break;
      case Kind::kSavedTensor:
      case Kind::kName:
        ++counts_.statements;
        break;
      case Kind::kBlockFree:
      case Kind::kRangePush:
      case Kind::kRangePop:
      case Kind::kCollective:
        break;
      default:
        ReadDefinition(slot, i);
    }
  }
  counts_.incomplete_texts = texts_.CountIncomplete();
}

void LedgerFile::ReadDefinition(const Slot& slot, std::uint64_t index) {
  bool well_formed = true;
  switch (slot.kind()) {
    case Kind::kText:
      well_formed = texts_.Add(slot.As<record::TextChunk>());
      break;
    case Kind::kScope:
      well_formed = scopes_.Add(slot.As<record::ScopeDefinition>());
      break;
    case Kind::kClock: {
      const auto& anchor = slot.As<record::ClockAnchor>();
      clock_.AddAnchor(anchor.ticks, anchor.monotonic_ns);
      break;
    }
    case Kind::kDevice:
      devices_.push_back(index);
      break;
    case Kind::kSetting:
      settings_.push_back(index);
      break;
    case Kind::kCommunicator:
      communicators_.Add(slot.As<record::CommunicatorInfo>(), index);
      break;
    case Kind::kProcessGroup:
      communicators_.AddGroup(slot.As<record::ProcessGroupInfo>(), index);
      break;
    case Kind::kValueRead:
      value_reads_.push_back(index);
      break;
    case Kind::kMark:
      marks_.push_back(index);
      break;
    case Kind::kPhase:
      phases_.push_back(index);
      break;
    default:
      if (KindName(slot.kind()).empty()) ++counts_.unknown_kind;
  }
  if (!well_formed) ++counts_.malformed;
}

std::string LedgerFile::program() const { return FixedText(header_.program); }
std::string LedgerFile::host() const { return FixedText(header_.host); }
std::string LedgerFile::run_id() const { return FixedText(header_.run_id); }
std::string LedgerFile::recorder_version() const { return FixedText(header_.recorder_version); }

std::string LedgerFile::SettingValue(absl::string_view key) const {
  for (auto slot = settings_.rbegin(); slot != settings_.rend(); ++slot) {
    const auto& setting = slots_[*slot].As<record::Setting>();
    if (Text(setting.key) == key) return Text(setting.value);
  }
  return "";
}

}  // namespace ledger::format
