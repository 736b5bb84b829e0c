// One 64-byte slot of a ledger, as it lies in the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "interpose/record/record.h"

namespace ledger::format {

class Slot {
 public:
  // The first eight bytes, which the recorder stores last: once they are not zero, the other 56 are there. Acquire, for
  // the reader of a job that is still running.
  bool committed() const { return __atomic_load_n(Words(), __ATOMIC_ACQUIRE) != 0; }

  const record::Commit& commit() const { return As<record::Commit>(); }
  record::Kind kind() const { return static_cast<record::Kind>(commit().kind); }

  // Every layout but TextChunk has its ticks at the same place.
  std::uint64_t ticks() const { return Words()[1]; }

  // The slot as one of the layouts of record.h; the caller has looked at kind().
  template <typename Layout>
  const Layout& As() const {
    static_assert(alignof(Layout) <= alignof(std::uint64_t) && sizeof(Layout) <= record::kRecordBytes);
    return *reinterpret_cast<const Layout*>(bytes_);
  }

 private:
  const std::uint64_t* Words() const { return reinterpret_cast<const std::uint64_t*>(bytes_); }

  // Slots are looked at where the file is mapped (or copied as a whole); nothing ever writes to one through this class.
  alignas(std::uint64_t) unsigned char bytes_[record::kRecordBytes];
};
static_assert(sizeof(Slot) == record::kRecordBytes);

}  // namespace ledger::format
