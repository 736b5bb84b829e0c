// A whole file, read-only in memory.
//
// The mapping has the size that the file had when it was opened. A recorder that still writes only ever appends, and
// cuts at its end nothing but slots that were never handed out, so what a reader looks at stays there.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ledger::format {

class MappedFile {
 public:
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  absl::Span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, std::size_t size) : data_(data), size_(size) {}

  const std::byte* data_ = nullptr;  // page-aligned; null for an empty file
  std::size_t size_ = 0;
};

}  // namespace ledger::format
