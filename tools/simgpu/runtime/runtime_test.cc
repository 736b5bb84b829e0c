// The runtime over the simulated driver, as a program that links libcudart sees it.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr size_t kMiB = size_t{1} << 20;

size_t FreeBytes() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  return free_bytes;
}

// Stands for the device code of a program: its host-side address, registered as the compiler's start-up code does.
void HostStub() {}
alignas(16) const char kImage[64] = "device code";

}  // namespace

// What the compiler's start-up code calls; no public header declares it.
extern "C" {
void** __cudaRegisterFatBinary(void* image);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function, const char* name,
                            int thread_limit, uint3* thread, uint3* block, dim3* block_dim, dim3* grid_dim, int* size);
void __cudaRegisterVar(void** handle, char* host_variable, char* device_address, const char* name, int ext, size_t size,
                       int constant, int global);
}

TEST_CASE("Memory that is allocated is missing from the device until it is freed") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  const size_t before = FreeBytes();
  void* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 64 * kMiB) == cudaSuccess);
  CHECK(FreeBytes() == before - 64 * kMiB);
  cudaPointerAttributes attributes;
  REQUIRE(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 0);
  REQUIRE(cudaFree(pointer) == cudaSuccess);
  CHECK(FreeBytes() == before);
}

TEST_CASE("An allocation that doesn't fit fails, leaves the pointer alone, and is the last error once") {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  REQUIRE(cudaGetLastError() == cudaSuccess);
  int marker = 0;
  void* pointer = &marker;
  CHECK(cudaMalloc(&pointer, total_bytes + kMiB) == cudaErrorMemoryAllocation);
  CHECK(pointer == &marker);
  CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaGetErrorString(cudaErrorMemoryAllocation) == std::string("out of memory"));
  CHECK(cudaGetErrorName(cudaErrorMemoryAllocation) == std::string("cudaErrorMemoryAllocation"));
}

TEST_CASE("The last error belongs to the thread") {
  REQUIRE(cudaSetDevice(10000) == cudaErrorInvalidDevice);
  std::thread([] { CHECK(cudaPeekAtLastError() == cudaSuccess); }).join();
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
}

TEST_CASE("The current device belongs to the thread, and allocations to the current device") {
  int count = 0;
  REQUIRE(cudaGetDeviceCount(&count) == cudaSuccess);
  REQUIRE(count >= 2);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  std::thread([] {
    int device = -1;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(device == 0);
  }).join();
  void* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, kMiB) == cudaSuccess);
  cudaPointerAttributes attributes;
  REQUIRE(cudaPointerGetAttributes(&attributes, pointer) == cudaSuccess);
  CHECK(attributes.device == 1);
  REQUIRE(cudaFree(pointer) == cudaSuccess);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}

TEST_CASE("Host memory is known to CUDA, other memory is not") {
  void* pinned = nullptr;
  REQUIRE(cudaMallocHost(&pinned, kMiB) == cudaSuccess);
  cudaPointerAttributes attributes;
  REQUIRE(cudaPointerGetAttributes(&attributes, pinned) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  REQUIRE(cudaFreeHost(pinned) == cudaSuccess);
  int local = 0;
  REQUIRE(cudaPointerGetAttributes(&attributes, &local) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("What is copied to the device comes back") {
  const std::string sent = "a small message";
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, sent.size()) == cudaSuccess);
  REQUIRE(cudaMemcpy(device, sent.data(), sent.size(), cudaMemcpyHostToDevice) == cudaSuccess);
  std::string received(sent.size(), ' ');
  REQUIRE(cudaMemcpy(received.data(), device, sent.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(received == sent);
  REQUIRE(cudaMemset(device, 0x41, sent.size()) == cudaSuccess);
  REQUIRE(cudaMemcpy(received.data(), device, sent.size(), cudaMemcpyDefault) == cudaSuccess);
  CHECK(received == std::string(sent.size(), 'A'));
  REQUIRE(cudaFree(device) == cudaSuccess);
}

TEST_CASE("A 2D copy moves rows of the width and leaves what lies between them") {
  char rows[4][8];
  std::memset(rows, 'r', sizeof(rows));
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 4 * 16) == cudaSuccess);
  REQUIRE(cudaMemset(device, '.', 4 * 16) == cudaSuccess);
  REQUIRE(cudaMemcpy2D(device, 16, rows, 8, 8, 4, cudaMemcpyHostToDevice) == cudaSuccess);
  std::string received(4 * 16, ' ');
  REQUIRE(cudaMemcpy(received.data(), device, received.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(received == "rrrrrrrr........rrrrrrrr........rrrrrrrr........rrrrrrrr........");
  REQUIRE(cudaFree(device) == cudaSuccess);
}

TEST_CASE("Events of a stream complete and measure time") {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  REQUIRE(cudaEventRecord(start, stream) == cudaSuccess);
  REQUIRE(cudaEventRecord(end, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaEventQuery(end) == cudaSuccess);
  float milliseconds = -1;
  REQUIRE(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  REQUIRE(cudaEventDestroy(start) == cudaSuccess);
  REQUIRE(cudaEventDestroy(end) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("Registered code is launched, its attributes and variables are there") {
  static char variable[1000];
  void** handle = __cudaRegisterFatBinary(const_cast<char*>(kImage));
  __cudaRegisterFunction(handle, reinterpret_cast<const char*>(&HostStub), nullptr, "kernel", -1, nullptr, nullptr,
                         nullptr, nullptr, nullptr);
  __cudaRegisterVar(handle, variable, nullptr, "variable", 0, sizeof(variable), 0, 0);
  __cudaRegisterFatBinaryEnd(handle);
  const auto* function = reinterpret_cast<const void*>(&HostStub);
  CHECK(cudaLaunchKernel(function, dim3(1), dim3(32), nullptr, 0, nullptr) == cudaSuccess);
  cudaFuncAttributes attributes;
  REQUIRE(cudaFuncGetAttributes(&attributes, function) == cudaSuccess);
  CHECK(attributes.maxThreadsPerBlock > 0);
  const char* name = nullptr;
  REQUIRE(cudaFuncGetName(&name, function) == cudaSuccess);
  CHECK(name == std::string("kernel"));
  size_t size = 0;
  REQUIRE(cudaGetSymbolSize(&size, variable) == cudaSuccess);
  CHECK(size == sizeof(variable));
  const int sent = 42;
  int received = 0;
  REQUIRE(cudaMemcpyToSymbol(variable, &sent, sizeof(sent), 16) == cudaSuccess);
  REQUIRE(cudaMemcpyFromSymbol(&received, variable, sizeof(received), 16) == cudaSuccess);
  CHECK(received == sent);
  __cudaUnregisterFatBinary(handle);
  CHECK(cudaGetSymbolSize(&size, variable) == cudaErrorInvalidSymbol);
  CHECK(cudaGetLastError() == cudaErrorInvalidSymbol);
}

TEST_CASE("A captured stream gives a graph of what was put into it") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  void* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 256) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  REQUIRE(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
  CHECK(status == cudaStreamCaptureStatusActive);
  REQUIRE(cudaMemsetAsync(pointer, 1, 256, stream) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(pointer, 2, 256, stream) == cudaSuccess);
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  size_t nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
  CHECK(nodes == 2);
  cudaGraphExec_t exec = nullptr;
  REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  char first = 0;
  REQUIRE(cudaMemcpy(&first, pointer, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(first == 2);
  REQUIRE(cudaGraphExecDestroy(exec) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  REQUIRE(cudaFree(pointer) == cudaSuccess);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("Stream-ordered allocations come from the device's pool and stay reserved there") {
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess);
  unsigned long long threshold = ~0ULL;
  REQUIRE(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess);
  void* pointer = nullptr;
  REQUIRE(cudaMallocAsync(&pointer, 4 * kMiB, nullptr) == cudaSuccess);
  unsigned long long used = 0;
  unsigned long long reserved = 0;
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 4 * kMiB);
  REQUIRE(cudaFreeAsync(pointer, nullptr) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) == cudaSuccess);
  CHECK(used == 0);
  CHECK(reserved >= 4 * kMiB);
  REQUIRE(cudaMemPoolTrimTo(pool, 0) == cudaSuccess);
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved) == cudaSuccess);
  CHECK(reserved == 0);
}

TEST_CASE("Device properties have no zero where a program would divide by it") {
  cudaDeviceProp prop;
  REQUIRE(cudaGetDeviceProperties(&prop, 0) == cudaSuccess);
  CHECK(prop.warpSize == 32);
  CHECK(prop.multiProcessorCount > 0);
  CHECK(prop.maxThreadsPerBlock >= 1024);
  CHECK(prop.maxThreadsPerMultiProcessor > 0);
  CHECK(prop.regsPerBlock > 0);
  CHECK(prop.sharedMemPerBlock > 0);
  CHECK(prop.maxGridSize[0] > 0);
  CHECK(prop.totalGlobalMem > 0);
  int major = 0;
  REQUIRE(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess);
  CHECK(major == prop.major);
}

TEST_CASE("Driver entry points are found by name, and unknown names are reported as such") {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  REQUIRE(cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 12000, cudaEnableDefault, &status) == cudaSuccess);
  CHECK(status == cudaDriverEntryPointSuccess);
  CHECK(function != nullptr);
  REQUIRE(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault, &status) ==
          cudaSuccess);
  CHECK(status == cudaDriverEntryPointSymbolNotFound);
  CHECK(function == nullptr);
}

TEST_CASE("The per-thread default stream has entry points of its own") {
  CHECK(dlsym(RTLD_DEFAULT, "cudaMemcpyAsync_ptsz") != nullptr);
  CHECK(dlsym(RTLD_DEFAULT, "cudaMemcpy_ptds") != nullptr);
  CHECK(dlsym(RTLD_DEFAULT, "cudaMemcpyAsync_ptsz") != dlsym(RTLD_DEFAULT, "cudaMemcpyAsync"));
}

TEST_CASE("A reset device has all its memory back") {
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  const size_t before = FreeBytes();
  void* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 32 * kMiB) == cudaSuccess);
  REQUIRE(cudaDeviceReset() == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  CHECK(FreeBytes() == before);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
}
