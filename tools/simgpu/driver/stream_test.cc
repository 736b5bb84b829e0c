#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/simgpu/driver/export_table.h"
#include "tools/simgpu/driver/test_context.h"

namespace simgpu {
namespace {

TEST_CASE("Streams know what they are") {
  const TestContext context;
  CUstream stream = nullptr;
  REQUIRE_OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100));
  int priority = 1;
  unsigned flags = 0;
  CUcontext owner = nullptr;
  unsigned long long id = 0, other = 0;
  REQUIRE_OK(cuStreamGetPriority(stream, &priority));
  REQUIRE(priority == -5);
  REQUIRE_OK(cuStreamGetFlags(stream, &flags));
  REQUIRE(flags == CU_STREAM_NON_BLOCKING);
  REQUIRE_OK(cuStreamGetCtx(stream, &owner));
  REQUIRE(owner == context.get());
  REQUIRE_OK(cuStreamGetId(stream, &id));
  REQUIRE_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &other));
  REQUIRE(id != other);
  REQUIRE_OK(cuStreamDestroy(stream));
  REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_INVALID_HANDLE);
}

// PyTorch gives cached segments back in the order of their streams' handles.
TEST_CASE("The order of handles is that in which streams were made, whatever the heap looks like") {
  const TestContext context;
  // Holes of every size that a stream might have; a heap hands out the last one first.
  std::vector<std::unique_ptr<char[]>> heap;
  for (std::size_t bytes = 64; bytes <= 1024; bytes += 16) {
    for (int i = 0; i < 8; ++i) heap.push_back(std::make_unique<char[]>(bytes));
  }
  for (std::size_t i = 0; i < heap.size(); i += 2) heap[i].reset();
  std::vector<CUstream> streams(5000);  // more than one chunk
  for (CUstream& stream : streams) REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE(std::is_sorted(streams.begin(), streams.end()));
  REQUIRE(std::set(streams.begin(), streams.end()).size() == streams.size());
  // The place of one that is gone is the next one's, as with a driver's heap: a handle alone does not tell them apart.
  const CUstream gone = streams[100];
  REQUIRE_OK(cuStreamDestroy(gone));
  REQUIRE_OK(cuStreamCreate(&streams[100], CU_STREAM_NON_BLOCKING));
  REQUIRE(streams[100] == gone);
  for (const CUstream stream : streams) REQUIRE_OK(cuStreamDestroy(stream));
}

TEST_CASE("Host functions run in order, within the call") {
  const TestContext context;
  int calls = 0;
  REQUIRE_OK(cuLaunchHostFunc(
      nullptr, [](void* user) { ++*static_cast<int*>(user); }, &calls));
  REQUIRE(calls == 1);
  // They may call the driver: no lock is held.
  REQUIRE_OK(cuLaunchHostFunc(
      nullptr,
      [](void* user) {
        CUdeviceptr address = 0;
        if (cuMemAlloc(&address, 100) == CUDA_SUCCESS && cuMemFree(address) == CUDA_SUCCESS) ++*static_cast<int*>(user);
      },
      &calls));
  REQUIRE(calls == 2);
}

TEST_CASE("Launches are checked as in life") {
  const TestContext context;
  const CUfunction function = TestKernel();
  REQUIRE(cuLaunchKernel(function, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuLaunchKernel(function, 1, 1, 1, 1024, 2, 1, 0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
  int no_function = 0;
  REQUIRE(cuLaunchKernel(reinterpret_cast<CUfunction>(&no_function), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
          CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("A subscriber sees kernels, copies and fills") {
  const TestContext context;
  const void* found = nullptr;
  REQUIRE_OK(cuGetExportTable(&found, &kExportTableId));
  const auto* table = static_cast<const ExportTable*>(found);
  std::vector<std::string> seen;
  const auto callback = [](void* user, const Activity* activity) {
    const char* name = activity->kind == ActivityKind::kKernel   ? activity->name
                       : activity->kind == ActivityKind::kMemcpy ? "copy"
                                                                 : "fill";
    static_cast<std::vector<std::string>*>(user)->push_back(name + std::string(" ") + std::to_string(activity->bytes));
  };
  REQUIRE_OK(table->subscribe_activity(callback, &seen));
  REQUIRE(table->subscribe_activity(callback, &seen) == CUDA_ERROR_ALREADY_MAPPED);
  const std::uint64_t launches = table->launches();
  CUdeviceptr address = 0;
  REQUIRE_OK(cuMemAlloc(&address, 4096));
  REQUIRE_OK(Launch(TestKernel("gemm")));
  REQUIRE_OK(cuMemsetD8(address, 1, 100));
  REQUIRE_OK(cuMemcpyDtoD(address, address + 1000, 10));
  REQUIRE_OK(table->subscribe_activity(nullptr, nullptr));
  REQUIRE_OK(Launch(TestKernel("unseen")));
  REQUIRE(seen == std::vector<std::string>{"gemm 0", "fill 100", "copy 10"});
  REQUIRE(table->launches() == launches + 2);
  REQUIRE_OK(cuMemFree(address));
}

TEST_CASE("Events without lag are complete at once") {
  const TestContext context;
  CUevent start = nullptr, end = nullptr;
  float milliseconds = -1;
  REQUIRE_OK(cuEventCreate(&start, 0));
  REQUIRE_OK(cuEventCreate(&end, 0));
  REQUIRE(cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE_OK(cuEventQuery(start));  // never recorded: complete
  REQUIRE_OK(cuEventRecord(start, nullptr));
  REQUIRE_OK(Launch(TestKernel()));
  REQUIRE_OK(cuEventRecord(end, nullptr));
  REQUIRE_OK(cuEventQuery(end));
  REQUIRE_OK(cuStreamQuery(nullptr));
  REQUIRE_OK(cuEventElapsedTime(&milliseconds, start, end));
  REQUIRE(milliseconds > 0);
  REQUIRE_OK(cuEventDestroy(start));
  REQUIRE_OK(cuEventDestroy(end));
  REQUIRE(cuEventQuery(end) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("Events for other processes are shared as such, or not at all") {
  const TestContext context;
  CUevent shared = nullptr, plain = nullptr, opened = nullptr;
  CUipcEventHandle handle = {};
  REQUIRE(cuIpcGetEventHandle(&handle, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE_OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
  REQUIRE(cuIpcGetEventHandle(&handle, plain) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuIpcOpenEventHandle(&opened, handle) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuEventCreate(&shared, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
  REQUIRE_OK(cuIpcGetEventHandle(&handle, shared));
  REQUIRE_OK(cuIpcOpenEventHandle(&opened, handle));
  REQUIRE_OK(cuEventQuery(opened));
}

// Run with SIMGPU_EVENT_LAG=2.
TEST_CASE("With a lag, an event completes after that many operations, or at a synchronisation", "[.lag]") {
  const TestContext context;
  const CUfunction kernel = TestKernel();
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(cuEventCreate(&event, 0));
  REQUIRE_OK(Launch(kernel, stream));
  REQUIRE_OK(cuEventRecord(event, stream));
  REQUIRE(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  float milliseconds = 0;
  REQUIRE(cuEventElapsedTime(&milliseconds, event, event) == CUDA_ERROR_NOT_READY);
  REQUIRE_OK(Launch(kernel, other));
  REQUIRE(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  REQUIRE_OK(Launch(kernel, other));
  REQUIRE_OK(cuEventQuery(event));
  REQUIRE_OK(cuStreamQuery(stream));

  REQUIRE_OK(cuEventRecord(event, stream));
  REQUIRE_OK(Launch(kernel, stream));
  REQUIRE_OK(cuEventRecord(event, stream));
  REQUIRE(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  REQUIRE_OK(cuStreamSynchronize(other));  // another stream's
  REQUIRE(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  SECTION("of the event") { REQUIRE_OK(cuEventSynchronize(event)); }
  SECTION("of the stream") { REQUIRE_OK(cuStreamSynchronize(stream)); }
  SECTION("of the context") { REQUIRE_OK(cuCtxSynchronize()); }
  REQUIRE_OK(cuEventQuery(event));
}

// Run with SIMGPU_EVENT_LAG=2.
TEST_CASE("With a lag, every operation counts, and not launches alone", "[.lag]") {
  const TestContext context;
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  CUdeviceptr memory = 0;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(cuEventCreate(&event, 0));
  REQUIRE_OK(cuMemAlloc(&memory, 4096));
  REQUIRE_OK(Launch(TestKernel(), stream));
  REQUIRE_OK(cuEventRecord(event, stream));
  REQUIRE_OK(cuMemsetD8Async(memory, 0, 4096, other));
  REQUIRE(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  SECTION("a copy") { REQUIRE_OK(cuMemcpyAsync(memory, memory + 2048, 1024, other)); }
  SECTION("a host function") {
    const CUhostFn nothing = [](void*) {};
    REQUIRE_OK(cuLaunchHostFunc(other, nothing, nullptr));
  }
  REQUIRE_OK(cuEventQuery(event));
}

// Run with SIMGPU_EVENT_LAG=2.
TEST_CASE("With a lag, a host that asks and gives no more work comes to an end", "[.lag]") {
  const TestContext context;
  CUstream stream = nullptr, other = nullptr;
  CUevent start = nullptr, end = nullptr, later = nullptr;
  REQUIRE_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  REQUIRE_OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  for (CUevent* event : {&start, &end, &later}) REQUIRE_OK(cuEventCreate(event, 0));
  // How often a question about it is answered with "not yet".
  const auto vain = [](auto query, auto handle) {
    int count = 0;
    while (count < 1000 && query(handle) == CUDA_ERROR_NOT_READY) ++count;
    return count;
  };
  REQUIRE_OK(Launch(TestKernel(), stream));
  REQUIRE_OK(cuEventRecord(start, stream));
  REQUIRE_OK(Launch(TestKernel(), stream));
  REQUIRE_OK(cuEventRecord(end, stream));
  SECTION("about an event") {
    REQUIRE(cuEventQuery(start) == CUDA_ERROR_NOT_READY);
    REQUIRE(vain(cuEventQuery, end) == 7);
    REQUIRE_OK(cuEventQuery(end));    // and it stays so
    REQUIRE_OK(cuEventQuery(start));  // with what came before it in its stream
    float milliseconds = 0;
    REQUIRE_OK(cuEventElapsedTime(&milliseconds, start, end));
    REQUIRE_OK(cuStreamQuery(stream));
  }
  SECTION("about a stream") {
    REQUIRE(vain(cuStreamQuery, stream) == 7);
    REQUIRE_OK(cuEventQuery(end));
  }
  SECTION("but for another stream's work, and what is given afterwards") {
    REQUIRE_OK(Launch(TestKernel(), other));
    REQUIRE_OK(cuEventRecord(later, other));
    REQUIRE(vain(cuEventQuery, end) == 7);
    REQUIRE(cuEventQuery(later) == CUDA_ERROR_NOT_READY);
    REQUIRE_OK(cuEventRecord(end, other));
    REQUIRE(vain(cuEventQuery, end) == 7);  // counted anew
  }
  SECTION("and only if it gives no more work meanwhile") {
    for (int turn = 0; turn < 5; ++turn) REQUIRE(cuEventQuery(end) == CUDA_ERROR_NOT_READY);
    REQUIRE_OK(Launch(TestKernel(), other));
    for (int turn = 0; turn < 5; ++turn) REQUIRE(cuEventQuery(end) == CUDA_ERROR_NOT_READY);
    REQUIRE_OK(Launch(TestKernel(), other));
    REQUIRE_OK(cuEventQuery(end));
  }
}

}  // namespace
}  // namespace simgpu
