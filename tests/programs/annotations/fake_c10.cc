// Stands for libc10.so: PyTorch's own reporting functions, which count their calls, under both spellings that they had.
#include "tests/programs/annotations/fake_c10.h"

namespace {
C10Calls g_calls;
}

namespace c10 {

[[gnu::visibility("default")]] void reportMemoryUsageToProfiler(void*, long change, unsigned long allocated,
                                                                unsigned long reserved, Device device) {
  ++g_calls.memory;
  g_calls.sum += change + static_cast<long>(allocated) + static_cast<long>(reserved) + device.type;
}
[[gnu::visibility("default")]] void reportMemoryUsageToProfiler(void*, long, long, long, Device) {
  ++g_calls.memory_signed;
}
[[gnu::visibility("default")]] void reportOutOfMemoryToProfiler(long, unsigned long, unsigned long, Device) {
  ++g_calls.oom;
}
[[gnu::visibility("default")]] void reportOutOfMemoryToProfiler(long, long, long, Device) { ++g_calls.oom_signed; }

}  // namespace c10

C10Calls TakeC10Calls() {
  const C10Calls calls = g_calls;
  g_calls = {};
  return calls;
}
