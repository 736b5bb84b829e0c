#include "interpose/hooks/allocation.h"

#include <algorithm>
#include <atomic>

#include "interpose/core/pinned_memory.h"
#include "interpose/core/process.h"
#include "interpose/core/thread_state.h"
#include "interpose/core/workspace_table.h"

namespace ledger::hooks {
namespace {

using record::Kind;
using record::Memory;

// Interned names of entry points. Texts keep their ids in a forked child, so these stay right there.
std::uint32_t CallText(Entry entry) {
  static constinit std::atomic<std::uint32_t> texts[kEntryCount] = {};
  std::atomic<std::uint32_t>& text = texts[Index(entry)];
  std::uint32_t id = text.load(std::memory_order_relaxed);
  if (id == 0) [[unlikely]] {
    id = InternText(InfoOf(entry).symbol);
    text.store(id, std::memory_order_relaxed);
  }
  return id;
}

bool OnHost(Memory memory) {
  return memory == Memory::kHost || memory == Memory::kHostRegistered || memory == Memory::kPhysicalHost;
}

bool IsPinned(const Piece& piece) { return piece.memory == Memory::kHost || piece.memory == Memory::kHostRegistered; }

// Does a call about this memory change how much of the device is in use at once?
bool IsPhysical(Memory memory, Kind kind) {
  if (OnHost(memory) || memory == Memory::kPeer || memory == Memory::kAddressSpace || memory == Memory::kAsync) {
    return false;
  }
  return kind != Kind::kHandleRetain;
}

record::Allocation Fill(const Site& site, Kind kind, int result, const Piece& piece, std::int8_t device) {
  record::Allocation record = {};
  record.commit.kind = static_cast<std::uint16_t>(kind);
  record.commit.layer = InfoOf(site.entry).layer;
  record.commit.device = device;
  record.address = piece.address;
  record.size = piece.size;
  record.scope = CurrentScope();
  record.owner = OwnerOf(site.caller);
  const std::uint64_t communicator = CurrentCommunicator(record.owner);
  record.context = communicator != 0 ? communicator : piece.context;
  record.call = CallText(site.entry);
  record.result = static_cast<std::uint16_t>(std::clamp(result, 0, 0xFFFF));
  record.memory = piece.memory;
  return record;
}

// Once per file, when a call of the runtime has returned: only then may the runtime be asked.
void NoteRuntimeOnce(record::Layer layer) {
  static constinit std::atomic<std::uint32_t> noted_in{0};
  if (layer != record::Layer::kRuntime || noted_in.load(std::memory_order_relaxed) == FileGeneration()) [[likely]]
    return;
  if (noted_in.exchange(FileGeneration()) != FileGeneration()) NoteRuntimeVersion();
}

std::int8_t DeviceFor(const Piece& piece) {
  if (OnHost(piece.memory) || piece.memory == Memory::kAddressSpace) return record::kNoDevice;
  return piece.device == kCurrentDevice ? CurrentDevice() : piece.device;
}

}  // namespace

void NoteAllocation(const Site& site, int result, const Piece& piece) {
  const bool succeeded = result == 0;
  if (succeeded && piece.address == 0) return;
  if (!Active() && (!succeeded || !Wake())) return;
  ErrnoSaver errno_saver;
  NoteRuntimeOnce(InfoOf(site.entry).layer);
  const std::int8_t device = DeviceFor(piece);
  NoteDevice(device);
  record::Allocation record = Fill(site, succeeded ? piece.kind : Kind::kAllocFailed, result, piece, device);
  if (succeeded && IsPhysical(piece.memory, piece.kind)) record.device_used = DeviceUsed(device);
  Append(record);
  if (succeeded && IsPinned(piece)) NotePinned(piece.address);
}

bool NoteFree(const Site& site, const Piece& piece) {
  if (piece.address == 0 || !Active()) return false;
  ErrnoSaver errno_saver;
  ForgetWorkspace(piece.address);
  if (IsPinned(piece)) ForgetPinned(piece.address);
  record::Allocation record = Fill(site, piece.kind, 0, piece, record::kNoDevice);
  Append(record);
  return true;
}

void AfterFree(const Site& site, int result, const Piece& piece) {
  if (!Active()) return;
  ErrnoSaver errno_saver;
  if (result != 0) {
    record::Allocation record = Fill(site, piece.kind, result, piece, record::kNoDevice);
    Append(record);
  } else if (IsPhysical(piece.memory, piece.kind)) {
    SampleDevice(site.entry);
  }
}

void NoteMapping(const Site& site, Kind kind, std::uint64_t address, std::uint64_t size, std::uint64_t handle,
                 std::uint64_t offset) {
  if (!Active()) return;
  ErrnoSaver errno_saver;
  record::Mapping record = {};
  record.commit.kind = static_cast<std::uint16_t>(kind);
  record.commit.layer = InfoOf(site.entry).layer;
  record.commit.device = record::kNoDevice;
  record.address = address;
  record.size = size;
  record.handle = handle;
  record.offset = offset;
  record.scope = CurrentScope();
  record.owner = OwnerOf(site.caller);
  Append(record);
}

void NoteDeviceReset(std::int8_t device, Entry why) {
  if (!Active() || device < 0) return;
  ErrnoSaver errno_saver;
  record::DeviceSample record = {};
  record.commit.kind = static_cast<std::uint16_t>(Kind::kDeviceReset);
  record.commit.layer = InfoOf(why).layer;
  record.commit.device = device;
  record.scope = CurrentScope();
  record.why = CallText(why);
  Append(record);
}

}  // namespace ledger::hooks
