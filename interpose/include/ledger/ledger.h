// The public C API of libledger.so: what a program, a framework or a script may tell the ledger.
//
// Nothing needs to link against the library. It is preloaded (LD_PRELOAD=libledger.so); a program that wants to talk to
// it looks the functions up with dlsym(RTLD_DEFAULT, "ledger_mark"), or from Python:
//
//     import ctypes
//     ledger = ctypes.CDLL(None)                 # the functions are missing when the job runs without the ledger
//     ledger.ledger_range_push(b"evaluation")
//
// Every function may be called from any thread, before the first CUDA call, and in a process that the ledger does not
// record: it then does nothing. None fails, blocks, or calls CUDA or the framework.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The version of this API. A function is only ever added.
#define LEDGER_API_VERSION 1

// Returns LEDGER_API_VERSION of the loaded library.
int ledger_api_version(void);

// Is this process being recorded at this moment? 0 while dormant, paused, switched off, or failed.
int ledger_recording(void);

// Opens a range on the calling thread: what is allocated until the matching pop belongs to it. Ranges nest, together
// with NVTX ranges, into one path. `name` is UTF-8 and is copied.
void ledger_range_push(const char* name);
void ledger_range_pop(void);

// Notes an instant. Shows up in `gpuledger dump`, and other commands take "mark:NAME" as a time.
void ledger_mark(const char* name);

// Says what lies at [address, address + bytes). 0 bytes: the allocation or block that contains the address.
// It holds until the memory is freed or another tag replaces it.
void ledger_tag(const void* address, size_t bytes, const char* tag);
void ledger_untag(const void* address);

// Stops and resumes recording in this process. What is freed while paused is a free of unknown memory later on, and a
// report says so: pausing trades exactness for silence.
void ledger_pause(void);
void ledger_resume(void);

// Waits until everything recorded so far is on disk (msync). Not needed for crash safety: records survive the process
// without it; it protects against the loss of the machine.
void ledger_flush(void);

// For simulated devices: the program read `bytes` bytes at a device address back to the host. No kernel computed them,
// so a value that steers the program may be wrong. `place` says where in the program, as "file:line function".
void ledger_value_read(const void* device_address, size_t bytes, const char* place);

// Loads the layers that see into PyTorch (op adapter and agent) now. They load themselves at the first block that PyTorch
// allocates on a device; a program that wants them earlier, or without a device, calls this with the interpreter's lock
// held: `ctypes.PyDLL(None).ledger_start_layers()`. Returns 0 where there is no interpreter or no recording.
int ledger_start_layers(void);

#ifdef __cplusplus
}
#endif
