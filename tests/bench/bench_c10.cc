// PyTorch's own side of the allocator's reports, when no profile is taken: looks whether one is, and returns.
namespace c10 {

struct Device {
  signed char type;
  signed char index;
};

namespace {
thread_local void* t_profiler = nullptr;
}

[[gnu::visibility("default")]] void reportMemoryUsageToProfiler(void*, long, unsigned long, unsigned long, Device) {
  if (t_profiler != nullptr) __builtin_trap();
}

}  // namespace c10
