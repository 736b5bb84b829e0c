// What the driver says about devices, asked past our hooks, and noted in the ledger.
#pragma once

#include <cstdint>

#include "interpose/hooks/entry.h"

namespace ledger::hooks {

// The calling thread's current device; kNoDevice where there is no context.
std::int8_t CurrentDevice();

// Appends a device's record when it is seen for the first time. The process is recorded.
void NoteDevice(std::int8_t device);

// Bytes in use on `device` now; 0 where it can't be asked: it is not current, a stream is being captured,
// LEDGER_MEMINFO=0.
std::uint64_t DeviceUsed(std::int8_t device);

// Appends a kDeviceSample for the current device, if what is used has changed since the last answer.
void SampleDevice(Entry why);

// The same for a context that is not current, and its device.
void SampleContext(Entry why, CUcontext context, std::int8_t device);

// Appends a pool's own counters, and the device's where the pool has grown or shrunk. A null pool: the current one of
// the current device.
void SamplePool(CUmemoryPool pool, Entry why);
// The pool is gone, and what it had reserved.
void NotePoolGone(CUmemoryPool pool);
// The pool that an address is from; null where the driver does not say.
CUmemoryPool PoolOf(std::uint64_t address);

// Captures, process-wide: while any is open the driver is not asked, because the question may invalidate it.
void NoteCaptureBegin();
void NoteCaptureEnd();
// Is this stream being captured? What is allocated on it then is a node of a graph, and no memory yet.
bool IsCapturing(CUstream stream, bool per_thread);

}  // namespace ledger::hooks
