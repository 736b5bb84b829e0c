// Uses CUDA in the ways that its first argument names, and prints what every call returned: the output must be the same
// with and without libledger.so.
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "interpose/core/cuda_headers.h"

extern char** environ;

namespace {

constexpr std::size_t kMiB = 1024 * 1024;

void Print(const char* what, int result) { std::printf("%s: %d, errno %d\n", what, result, errno); }

void Linear() {
  void* first = nullptr;
  Print("cudaMalloc", cudaMalloc(&first, 3 * kMiB));
  CUdeviceptr second = 0;
  Print("cuMemAlloc", cuMemAlloc_v2(&second, 5 * kMiB));
  Print("cuMemFree", cuMemFree_v2(second));
  Print("cudaFree", cudaFree(first));
  Print("cudaFree null", cudaFree(nullptr));
  void* none = nullptr;
  Print("cudaMalloc 0", cudaMalloc(&none, 0));
}

void Kinds() {
  void* pointer = nullptr;
  std::size_t pitch = 0;
  Print("pitch", cudaMallocPitch(&pointer, &pitch, 100, 10));
  Print("free", cudaFree(pointer));
  cudaPitchedPtr pitched = {};
  Print("3d", cudaMalloc3D(&pitched, cudaExtent{100, 10, 4}));
  Print("free", cudaFree(pitched.ptr));
  Print("managed", cudaMallocManaged(&pointer, kMiB, cudaMemAttachGlobal));
  Print("free", cudaFree(pointer));
  Print("host", cudaMallocHost(&pointer, kMiB));
  Print("free host", cudaFreeHost(pointer));
  Print("host alloc", cudaHostAlloc(&pointer, 2 * kMiB, cudaHostAllocDefault));
  Print("free host", cudaFreeHost(pointer));
  static char buffer[64 * 1024];
  Print("register", cudaHostRegister(buffer, sizeof(buffer), cudaHostRegisterDefault));
  Print("unregister", cudaHostUnregister(buffer));
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  Print("array", cudaMallocArray(&array, &format, 64, 32, 0));
  if (array != nullptr) Print("free array", cudaFreeArray(array));
}

void Mipmapped() {
  const cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaMipmappedArray_t runtime_array = nullptr;
  Print("runtime", cudaMallocMipmappedArray(&runtime_array, &format, cudaExtent{64, 32, 0}, 3, 0));
  cudaArray_t level = nullptr;
  Print("level", cudaGetMipmappedArrayLevel(&level, runtime_array, 1));
  Print("free", cudaFreeMipmappedArray(runtime_array));
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  descriptor.Width = 16;
  descriptor.Height = 8;
  descriptor.Depth = 4;
  descriptor.Format = CU_AD_FORMAT_HALF;
  descriptor.NumChannels = 2;
  CUmipmappedArray driver_array = nullptr;
  Print("driver", cuMipmappedArrayCreate(&driver_array, &descriptor, 2));
  Print("destroy", cuMipmappedArrayDestroy(driver_array));
}

// A process that exports memory and one that opens it, at both layers; each starts CUDA for itself.
void Shared() {
  int handles[2];
  int done[2];
  if (pipe(handles) != 0 || pipe(done) != 0) std::abort();
  char byte = 0;
  std::fflush(stdout);
  const pid_t importer = fork();
  if (importer == 0) {
    cudaIpcMemHandle_t handle;
    if (read(handles[0], &handle, sizeof(handle)) != sizeof(handle)) std::abort();
    void* pointer = nullptr;
    Print("open", cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess));
    Print("close", cudaIpcCloseMemHandle(pointer));
    CUipcMemHandle below;
    std::memcpy(&below, &handle, sizeof(below));
    CUdeviceptr address = 0;
    Print("open below", cuIpcOpenMemHandle_v2(&address, below, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
    Print("close below", cuIpcCloseMemHandle(address));
    std::fflush(stdout);
    if (write(done[1], &byte, 1) != 1) std::abort();
    std::exit(0);
  }
  void* pointer = nullptr;
  cudaIpcMemHandle_t handle;
  const int allocated = cudaMalloc(&pointer, 4 * kMiB);
  const int exported = cudaIpcGetMemHandle(&handle, pointer);
  if (write(handles[1], &handle, sizeof(handle)) != sizeof(handle) || read(done[0], &byte, 1) != 1) std::abort();
  int status = 0;
  waitpid(importer, &status, 0);
  Print("malloc", allocated);
  Print("export", exported);
  Print("free", cudaFree(pointer));
  Print("status", status);
}

// Every way to give back what is not there.
void Frees() {
  void* pointer = nullptr;
  Print("cudaMalloc", cudaMalloc(&pointer, kMiB));
  Print("cudaFree", cudaFree(pointer));
  Print("double", cudaFree(pointer));
  int on_stack = 0;
  Print("foreign", cudaFree(&on_stack));
  Print("unknown", cuMemFree_v2(0x123456));
  Print("host", cudaFreeHost(&on_stack));
  Print("unregister", cudaHostUnregister(&on_stack));
  Print("handle", cuMemRelease(0x77));
  Print("too large", cudaMalloc(&pointer, std::size_t{1} << 60));
  Print("last error", cudaGetLastError());
  Print("last error again", cudaPeekAtLastError());
}

// Gives back what the recorder has not seen coming: it was paused then.
void Unseen() {
  using Switch = void (*)();
  const auto pause = reinterpret_cast<Switch>(dlsym(RTLD_DEFAULT, "ledger_pause"));
  const auto resume = reinterpret_cast<Switch>(dlsym(RTLD_DEFAULT, "ledger_resume"));
  void* seen = nullptr;
  void* unseen = nullptr;
  Print("seen", cudaMalloc(&seen, kMiB));
  if (pause != nullptr) pause();
  Print("unseen", cudaMalloc(&unseen, 7 * kMiB));
  if (resume != nullptr) resume();
  Print("free unseen", cudaFree(unseen));
  Print("free seen", cudaFree(seen));
}

CUmemAllocationProp Properties(CUmemLocationType type, int id) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = type;
  properties.location.id = id;
  return properties;
}

void Locations() {
  cudaFree(nullptr);
  const struct {
    const char* name;
    CUmemLocationType type;
  } kLocations[] = {{"device", CU_MEM_LOCATION_TYPE_DEVICE},
                    {"host", CU_MEM_LOCATION_TYPE_HOST},
                    {"host NUMA", CU_MEM_LOCATION_TYPE_HOST_NUMA}};
  for (const auto& location : kLocations) {
    CUmemGenericAllocationHandle handle = 0;
    const CUmemAllocationProp properties = Properties(location.type, 0);
    Print(location.name, cuMemCreate(&handle, 2 * kMiB, &properties, 0));
    if (handle != 0) Print("release", cuMemRelease(handle));
  }
}

void Virtual() {
  cudaFree(nullptr);
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handle = 0, again = 0;
  const CUmemAllocationProp properties = Properties(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  Print("reserve", cuMemAddressReserve(&address, 8 * kMiB, 0, 0, 0));
  Print("create", cuMemCreate(&handle, 4 * kMiB, &properties, 0));
  Print("map", cuMemMap(address, 4 * kMiB, 0, handle, 0));
  Print("retain", cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(address)));
  Print("release", cuMemRelease(handle));
  Print("release again", cuMemRelease(again));
  Print("unmap", cuMemUnmap(address, 4 * kMiB));
  Print("unreserve", cuMemAddressFree(address, 8 * kMiB));
}

void Async() {
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  void* pointer = nullptr;
  Print("malloc", cudaMallocAsync(&pointer, kMiB, stream));
  Print("free", cudaFreeAsync(pointer, stream));
  Print("sync", cudaStreamSynchronize(stream));
  cudaGraph_t graph = nullptr;
  Print("begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  Print("malloc in a capture", cudaMallocAsync(&pointer, kMiB, stream));
  Print("free in a capture", cudaFreeAsync(pointer, stream));
  Print("end", cudaStreamEndCapture(stream, &graph));
  Print("destroy", cudaGraphDestroy(graph));
  cudaMemPool_t pool = nullptr;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  Print("trim", cudaMemPoolTrimTo(pool, 0));
}

// The driver's functions as PyTorch's expandable segments and NCCL get them: from the runtime, and from the driver.
void Lookups() {
  cudaFree(nullptr);
  cudaDriverEntryPointQueryResult status;
  void* allocate = nullptr;
  void* release = nullptr;
  Print("by version", cudaGetDriverEntryPointByVersion("cuMemAlloc", &allocate, 12000, cudaEnableDefault, &status));
  Print("by name", cudaGetDriverEntryPoint("cuMemFree", &release, cudaEnableDefault, &status));
  void* again = nullptr;
  Print("again", cudaGetDriverEntryPointByVersion("cuMemAlloc", &again, 12000, cudaEnableDefault, nullptr));
  std::printf("the same function: %d\n", again == allocate);
  void* missing = nullptr;
  const int result = cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &missing, 12000, cudaEnableDefault, &status);
  std::printf("missing: %d, status %d, %p\n", result, static_cast<int>(status), missing);
  CUdeviceptr address = 0;
  Print("allocate", reinterpret_cast<decltype(&cuMemAlloc_v2)>(allocate)(&address, 7 * kMiB));
  Print("release", reinterpret_cast<decltype(&cuMemFree_v2)>(release)(address));
}

void Reset() {
  void* pointer = nullptr;
  Print("cudaMalloc", cudaMalloc(&pointer, kMiB));
  Print("reset", cudaDeviceReset());
}

// 200,000 pairs from eight threads.
void Pairs() {
  constexpr int kThreads = 8;
  constexpr int kPairs = 25'000;
  std::vector<std::thread> threads;
  cudaFree(nullptr);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([] {
      for (int pair = 0; pair < kPairs; ++pair) {
        void* pointer = nullptr;
        if (cudaMalloc(&pointer, 4096) != cudaSuccess) std::abort();
        if (cudaFree(pointer) != cudaSuccess) std::abort();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The caller's errno and the runtime's error state pass through every call.
void Errors() {
  cudaFree(nullptr);
  void* pointer = nullptr;
  cudaMalloc(&pointer, std::size_t{1} << 60);
  for (int round = 0; round < 3; ++round) {
    errno = 4711;
    CUdeviceptr address = 0;
    Print("cuMemAlloc", cuMemAlloc_v2(&address, kMiB));
    Print("cuMemFree", cuMemFree_v2(address));
    Print("peek", cudaPeekAtLastError());
  }
}

// A child that is the first to use CUDA, and its parent after it.
void ForkFirst() {
  const pid_t child = fork();
  void* pointer = nullptr;
  const int result = cudaMalloc(&pointer, child == 0 ? 2 * kMiB : kMiB);
  if (child == 0) std::exit(result);
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("parent %d, child %d\n", result, WEXITSTATUS(status));
}

int Children() {
  void* pointer = nullptr;
  Print("cudaMalloc", cudaMalloc(&pointer, kMiB));
  std::fflush(stdout);
  // fork, doing nothing
  if (fork() == 0) std::exit(0);
  // fork, using CUDA: the platform refuses, as in life
  if (fork() == 0) {
    void* mine = nullptr;
    const int initialized = cuInit(0);
    _exit(initialized != CUDA_SUCCESS && cudaMalloc(&mine, 2 * kMiB) != cudaSuccess ? 0 : 1);
  }
  // clone, for which no fork handler runs
  if (syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) {
    void* mine = nullptr;
    cudaMalloc(&mine, 4 * kMiB);
    _exit(0);
  }
  char path[] = "/bin/true";
  char* arguments[] = {path, nullptr};
  if (vfork() == 0) {
    execv(path, arguments);
    _exit(127);
  }
  pid_t spawned = 0;
  posix_spawn(&spawned, path, nullptr, nullptr, arguments, environ);
  int status = 0;
  int failures = 0;
  while (wait(&status) > 0) failures += status != 0;
  if (std::system("true") != 0) ++failures;
  Print("cudaFree", cudaFree(pointer));
  std::printf("failures %d\n", failures);
  return failures == 0 ? 0 : 1;
}

// Ends as `how` says, with a thread that allocates all the time.
int End(const std::string& how) {
  void* pointer = nullptr;
  cudaMalloc(&pointer, kMiB);
  std::thread([] {
    for (;;) {
      void* mine = nullptr;
      if (cudaMalloc(&mine, 4096) == cudaSuccess) cudaFree(mine);
    }
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  if (how == "_exit") _exit(3);
  if (how == "quick_exit") std::quick_exit(4);
  if (how == "abort") std::abort();
  if (how == "kill") raise(SIGKILL);
  return 5;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string way = count > 1 ? arguments[1] : "";
  const std::map<std::string, void (*)()> kWays = {
      {"linear", Linear},   {"kinds", Kinds},         {"frees", Frees},         {"locations", Locations},
      {"virtual", Virtual}, {"async", Async},         {"lookups", Lookups},     {"reset", Reset},
      {"pairs", Pairs},     {"errors", Errors},       {"mipmapped", Mipmapped}, {"shared", Shared},
      {"unseen", Unseen},   {"fork first", ForkFirst}};
  errno = 0;
  if (way == "children") return Children();
  if (way == "end") return End(arguments[2]);
  const auto found = kWays.find(way);
  if (found == kWays.end()) {
    std::fprintf(stderr, "memory_program: no way called %s\n", way.c_str());
    return 2;
  }
  found->second();
  return 0;
}
