// Contexts: one primary context per device, and those that programs create for themselves.
//
// Context objects are never deleted, so a stale handle is recognised instead of followed.
#pragma once

#include <cstdint>
#include <map>

#include "tools/simgpu/driver/driver.h"

namespace simgpu {

struct Stream;

struct Context {
  std::uint32_t magic;  // tells a context from a handle of another kind
  Device* device;
  std::uint32_t id;
  bool primary;
  bool alive = false;
  int references = 0;  // of a primary context
  unsigned flags = 0;
  Stream* legacy_stream = nullptr;
  std::map<std::uint64_t, Stream*> thread_streams{};  // by thread: the per-thread default streams
  std::uint64_t code_bytes = 0;                       // of loaded functions
  std::uint64_t code_charged = 0;                     // of these, in whole chunks, taken from the device
  std::map<CUlimit, std::size_t> limits{};
};

// The calling thread's current context, alive or not; null: none.
Context* CurrentContext();
// The same for a function that needs one: CUDA_ERROR_INVALID_CONTEXT without, CUDA_ERROR_CONTEXT_IS_DESTROYED.
CUresult RequireContext(Context** context);

// All below: with the lock held.
CUresult RetainPrimary(Device* device, Context** context);
// Frees everything that belongs to a context and gives back what it cost.
void DestroyContext(Context* context);
// Counts a function's code as loaded; memory for code is taken in chunks. Assumed sizes: see the profile.
CUresult ChargeCode(Context* context, std::uint64_t bytes);

inline CUcontext ToHandle(Context* context) { return reinterpret_cast<CUcontext>(context); }
// Null where the handle is none of a context.
Context* FromHandle(CUcontext handle);

}  // namespace simgpu
