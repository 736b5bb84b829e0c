// What the recorder's hooks cost: nanoseconds per call, without and with libledger.so, the least of many rounds.
//
//     recorder_bench build/lib/libledger.so            (LD_LIBRARY_PATH=build/lib/simgpu for the driver's row)
//
// It starts itself twice, with and without the library in front, and prints both and the difference. Everything that
// lies behind a hook is there in both: a libc10.so that the reports go on to, NVTX in this program, a simulated driver.
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace c10 {
struct Device {
  signed char type;
  signed char index;
};
void reportMemoryUsageToProfiler(void*, long, unsigned long, unsigned long, Device);  // bench_c10.cc
}  // namespace c10

namespace {

constexpr int kRounds = 30;

template <typename Body>
double Nanoseconds(int calls, int calls_per_turn, Body body) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; i += calls_per_turn) body(i);
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / calls);
  }
  return best;
}

double BlockEvent() {
  return Nanoseconds(20'000, 2, [](int i) {
    void* const block = reinterpret_cast<void*>(std::uintptr_t{0x7f0000000000} + static_cast<std::uintptr_t>(i) * 512);
    c10::reportMemoryUsageToProfiler(block, 512, 512, 2 << 20, c10::Device{1, 0});
    c10::reportMemoryUsageToProfiler(block, -512, 0, 2 << 20, c10::Device{1, 0});
  });
}

double Range() {
  return Nanoseconds(20'000, 2, [](int) {
    nvtxRangePushA("a range of the usual length");
    nvtxRangePop();
  });
}

// -1 where there is no driver that works.
double DriverCall() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return -1;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto retain = reinterpret_cast<int (*)(void**, int)>(dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto set = reinterpret_cast<int (*)(void*)>(dlsym(driver, "cuCtxSetCurrent"));
  const auto allocate = reinterpret_cast<int (*)(std::uint64_t*, std::size_t)>(dlsym(driver, "cuMemAlloc_v2"));
  const auto free = reinterpret_cast<int (*)(std::uint64_t)>(dlsym(driver, "cuMemFree_v2"));
  void* context = nullptr;
  if (init == nullptr || init(0) != 0 || retain(&context, 0) != 0 || set(context) != 0) return -1;
  return Nanoseconds(2'000, 2, [&](int) {
    std::uint64_t address = 0;
    if (allocate(&address, 1 << 20) != 0 || free(address) != 0) std::abort();
  });
}

// One process's numbers, on one line.
int Measure() {
  std::printf("%.2f %.2f %.2f\n", BlockEvent(), Range(), DriverCall());
  return 0;
}

std::vector<double> MeasureIn(const std::string& self, const char* preload) {
  setenv("LD_PRELOAD", preload, 1);
  std::FILE* const child = popen(("'" + self + "' --measure").c_str(), "r");
  unsetenv("LD_PRELOAD");
  std::vector<double> numbers(3, -1);
  if (child == nullptr || std::fscanf(child, "%lf %lf %lf", &numbers[0], &numbers[1], &numbers[2]) != 3) {
    std::fprintf(stderr, "recorder_bench: the measuring process failed (LD_PRELOAD=%s)\n", preload);
    std::exit(1);
  }
  pclose(child);
  return numbers;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: recorder_bench LIBLEDGER\n");
    return 2;
  }
  if (std::strcmp(arguments[1], "--measure") == 0) return Measure();
  const std::string self = std::filesystem::canonical("/proc/self/exe");
  std::string folder = std::filesystem::temp_directory_path() / "recorder-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return 1;
  setenv("LEDGER_DIR", folder.c_str(), 1);
  const std::vector<double> without = MeasureIn(self, "");
  const std::vector<double> with = MeasureIn(self, arguments[1]);
  std::filesystem::remove_all(folder);
  const char* const rows[] = {"allocator's report of a block", "NVTX push or pop", "driver: cuMemAlloc or cuMemFree"};
  std::printf("%-32s %10s %10s %10s   (ns per call)\n", "", "without", "with", "difference");
  for (std::size_t i = 0; i < 3; ++i) {
    if (without[i] < 0 || with[i] < 0) {
      std::printf("%-32s %10s\n", rows[i], "no driver");
    } else {
      std::printf("%-32s %10.1f %10.1f %10.1f\n", rows[i], without[i], with[i], with[i] - without[i]);
    }
  }
  return 0;
}
