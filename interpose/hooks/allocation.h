// From the result of a memory call to the records about it.
#pragma once

#include <cstdint>

#include "interpose/core/recorder.h"
#include "interpose/hooks/device.h"
#include "interpose/hooks/entry.h"

namespace ledger::hooks {

// A device that only the driver knows: the calling thread's current one.
inline constexpr std::int8_t kCurrentDevice = -2;

// What a call asked for or got.
struct Piece {
  record::Memory memory = record::Memory::kUnknown;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t context = 0;  // stream, pool, or other object that the call had it from
  std::int8_t device = kCurrentDevice;
  record::Kind kind = record::Kind::kAlloc;
};

// The value of an out-parameter: 0 unless the call succeeded and the caller wanted one.
template <typename Result, typename Value>
std::uint64_t OutValue(Result result, Value* out) {
  if (static_cast<int>(result) != 0 || out == nullptr) return 0;
  if constexpr (std::is_pointer_v<Value>) {
    return reinterpret_cast<std::uint64_t>(*out);
  } else {
    return static_cast<std::uint64_t>(*out);
  }
}

// After a call that gets memory: a record of what it got, or of the refusal. A success wakes a dormant recorder;
// nothing is noted where a call gave nothing (null for a size of zero).
void NoteAllocation(const Site& site, int result, const Piece& piece);

// Before a call that gives memory back. False: not recorded, AfterFree has nothing to do.
bool NoteFree(const Site& site, const Piece& piece);

// After it: a refusal is a second kFree with the error in `result`, and takes the first one back.
void AfterFree(const Site& site, int result, const Piece& piece);

// Address ranges that physical memory is mapped to.
void NoteMapping(const Site& site, record::Kind kind, std::uint64_t address, std::uint64_t size, std::uint64_t handle,
                 std::uint64_t offset);

// Everything on the device is gone.
void NoteDeviceReset(std::int8_t device, Entry why);

}  // namespace ledger::hooks
