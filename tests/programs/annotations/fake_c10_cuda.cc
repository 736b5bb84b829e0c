// Stands for libc10_cuda.so: an allocator that reports across the border of libc10.so.
#include <cerrno>
#include <cstdio>

#include "tests/programs/annotations/fake_c10.h"

using c10::Device;

namespace {
void* At(unsigned long address) { return reinterpret_cast<void*>(address); }
}  // namespace

extern "C" [[gnu::visibility("default")]] int RunAllocator() {
  errno = 4711;
  c10::reportMemoryUsageToProfiler(At(0x1000), 512L, 512UL, 2097152UL, Device{1, 3});
  c10::reportMemoryUsageToProfiler(At(0x2000), 1024L, 1536L, 2097152L, Device{1, 3});
  c10::reportMemoryUsageToProfiler(At(0x9000), 64L, 64UL, 64UL, Device{0, -1});  // host memory
  c10::reportMemoryUsageToProfiler(At(0x1000), -512L, 1024UL, 2097152UL, Device{1, 3});
  c10::reportOutOfMemoryToProfiler(1L << 40, 1024UL, 2097152UL, Device{1, 3});
  c10::reportOutOfMemoryToProfiler(1L << 41, 1024L, 2097152L, Device{1, 3});
  const bool errno_kept = errno == 4711;
  const C10Calls calls = TakeC10Calls();
  const long sum = 512L + 512 + 2097152 + 1 + 64 + 64 + 64 - 512 + 1024 + 2097152 + 1;
  const bool forwarded =
      calls.memory == 3 && calls.memory_signed == 1 && calls.oom == 1 && calls.oom_signed == 1 && calls.sum == sum;
  if (!errno_kept || !forwarded) {
    std::fprintf(stderr, "errno %s; forwarded %d+%d and %d+%d, sum %ld (expected 3+1, 1+1, %ld)\n",
                 errno_kept ? "kept" : "changed", calls.memory, calls.memory_signed, calls.oom, calls.oom_signed,
                 calls.sum, sum);
  }
  return errno_kept && forwarded ? 0 : 1;
}
