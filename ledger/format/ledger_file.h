// An opened ledger: its header, its slots, and the tables that its definitions make.
//
// Open() reads the file once from front to back: it resolves texts, scopes, clocks, settings, devices and
// communicators, and counts what it cannot use. After that the slots are there for as many passes as anyone likes,
// without a copy.
//
// The input is hostile: nothing in the file is trusted beyond its size, nothing in it can make the reader fail other
// than by a Status from Open(), and memory taken is bounded by the size of the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "interpose/record/record.h"
#include "ledger/format/clock.h"
#include "ledger/format/communicator_table.h"
#include "ledger/format/mapped_file.h"
#include "ledger/format/scope_table.h"
#include "ledger/format/slot.h"
#include "ledger/format/text_table.h"

namespace ledger::format {

// What the reader met. Everything but the first three is a loss.
struct ReadCounts {
  std::uint64_t committed = 0;
  std::uint64_t blocks = 0;       // of these, allocations of blocks ...
  std::uint64_t statements = 0;   // ... and names and saved tensors
  std::uint64_t uncommitted = 0;  // reserved and never finished: the process died in between
  std::uint64_t cut_off = 0;      // reserved according to the header, and beyond the end of the file
  std::uint64_t unknown_kind = 0;
  std::uint64_t malformed = 0;         // definitions that contradict the format
  std::uint64_t incomplete_texts = 0;  // a chunk is missing
};

class LedgerFile {
 public:
  static absl::StatusOr<LedgerFile> Open(const std::string& path);

  // The header alone, checked as Open() does.
  static absl::StatusOr<record::FileHeader> ReadHeader(const std::string& path);

  // The same from memory, for tests and fuzzing. `bytes` are copied; `name` stands in messages for the path.
  static absl::StatusOr<LedgerFile> FromBytes(absl::Span<const std::byte> bytes, const std::string& name);

  LedgerFile(LedgerFile&&) = default;
  LedgerFile& operator=(LedgerFile&&) = default;

  const std::string& path() const { return path_; }
  const record::FileHeader& header() const { return header_; }
  absl::Span<const Slot> slots() const { return slots_; }
  const ReadCounts& counts() const { return counts_; }
  const TextTable& texts() const { return texts_; }
  const ScopeTable& scopes() const { return scopes_; }
  const Clock& clock() const { return clock_; }

  std::string Text(std::uint32_t id) const { return texts_.Get(id); }
  std::string ScopePath(std::uint32_t id) const { return scopes_.Path(id, texts_); }
  std::uint64_t TicksAt(std::uint64_t slot) const { return slots_[slot].ticks(); }
  // Nanoseconds since the file was opened; `otherwise` behind the last slot.
  std::int64_t TimeAt(std::uint64_t slot, std::int64_t otherwise = 0) const {
    return slot < slots_.size() ? clock_.SinceOpenNs(TicksAt(slot)) : otherwise;
  }

  // Where the file says so itself; rank 0 of 1 otherwise.
  int rank() const { return header_.rank; }
  bool clean_end() const { return header_.clean_end == 1; }
  std::string program() const;
  std::string host() const;
  std::string run_id() const;
  std::string recorder_version() const;

  // Positions of rare records, in order.
  absl::Span<const std::uint64_t> settings() const { return settings_; }
  absl::Span<const std::uint64_t> devices() const { return devices_; }
  absl::Span<const std::uint64_t> value_reads() const { return value_reads_; }
  absl::Span<const std::uint64_t> marks() const { return marks_; }
  absl::Span<const std::uint64_t> phases() const { return phases_; }

  absl::Span<const CommunicatorTable::Communicator> communicators() const { return communicators_.all(); }
  // See CommunicatorTable::Find.
  std::optional<std::size_t> FindCommunicator(std::uint64_t context, std::uint64_t slot) const {
    return communicators_.Find(context, slot);
  }

  // The last value of a setting, or "" if there is none.
  std::string SettingValue(absl::string_view key) const;

  // Bytes from the start of the file, for messages.
  std::uint64_t OffsetOf(std::uint64_t slot) const { return header_.header_bytes + record::kRecordBytes * slot; }

 private:
  explicit LedgerFile(const record::FileHeader& header) : header_(header), clock_(header) {}

  static absl::StatusOr<LedgerFile> FromMapping(absl::Span<const std::byte> bytes, const std::string& path);
  void FindSlots(absl::Span<const std::byte> bytes);
  void ReadDefinitions();
  void ReadDefinition(const Slot& slot, std::uint64_t index);

  std::string path_;
  MappedFile file_;
  std::vector<Slot> copy_;  // of FromBytes
  record::FileHeader header_;
  absl::Span<const Slot> slots_;
  ReadCounts counts_;
  TextTable texts_{0};
  ScopeTable scopes_{0};
  Clock clock_;
  CommunicatorTable communicators_;
  std::vector<std::uint64_t> settings_, devices_, value_reads_, marks_, phases_;
};

}  // namespace ledger::format
