#include <vector>

#include "tools/simgpu/driver/test_context.h"

namespace simgpu {
namespace {

class CapturedStreams {
 public:
  CapturedStreams() {
    REQUIRE_OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    REQUIRE_OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    REQUIRE_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
  ~CapturedStreams() {
    cuStreamDestroy(first);
    cuStreamDestroy(second);
    cuEventDestroy(event);
  }
  CapturedStreams(const CapturedStreams&) = delete;
  CapturedStreams& operator=(const CapturedStreams&) = delete;
  void Fork() {
    REQUIRE_OK(cuEventRecord(event, first));
    REQUIRE_OK(cuStreamWaitEvent(second, event, 0));
  }
  void Join() {
    REQUIRE_OK(cuEventRecord(event, second));
    REQUIRE_OK(cuStreamWaitEvent(first, event, 0));
  }
  CUstream first = nullptr, second = nullptr;
  CUevent event = nullptr;
};

std::size_t NodeCount(CUgraph graph) {
  std::size_t count = 0;
  REQUIRE_OK(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

TEST_CASE("A capture turns work into nodes, and a launch does the work") {
  const TestContext context;
  CapturedStreams streams;
  const CUfunction kernel = TestKernel();
  CUdeviceptr address = 0;
  REQUIRE_OK(cuMemAlloc(&address, 4096));
  int calls = 0;
  REQUIRE_OK(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  REQUIRE_OK(cuStreamIsCapturing(streams.first, &status));
  REQUIRE(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  REQUIRE_OK(Launch(kernel, streams.first));
  REQUIRE_OK(cuMemsetD32Async(address, 77, 4, streams.first));
  REQUIRE_OK(cuLaunchHostFunc(
      streams.first, [](void* user) { ++*static_cast<int*>(user); }, &calls));
  REQUIRE(calls == 0);
  REQUIRE(cuStreamSynchronize(streams.second) == CUDA_SUCCESS);  // not in the capture
  CUgraph graph = nullptr;
  REQUIRE_OK(cuStreamEndCapture(streams.first, &graph));
  REQUIRE(NodeCount(graph) == 3);
  CUgraphExec exec = nullptr;
  REQUIRE_OK(cuGraphInstantiate(&exec, graph, 0));
  REQUIRE_OK(cuGraphDestroy(graph));
  std::uint32_t value = 0;
  REQUIRE_OK(cuMemcpyDtoH(&value, address, 4));
  REQUIRE(value == 0);
  REQUIRE_OK(cuGraphLaunch(exec, streams.first));
  REQUIRE_OK(cuGraphLaunch(exec, streams.first));
  REQUIRE(calls == 2);
  REQUIRE_OK(cuMemcpyDtoH(&value, address, 4));
  REQUIRE(value == 77);
  REQUIRE_OK(cuGraphExecDestroy(exec));
  REQUIRE(cuGraphLaunch(exec, streams.first) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuMemFree(address));
}

TEST_CASE("Events carry a capture to other streams and back") {
  const TestContext context;
  CapturedStreams streams;
  const CUfunction kernel = TestKernel();
  REQUIRE_OK(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  REQUIRE_OK(Launch(kernel, streams.first));
  streams.Fork();
  cuuint64_t first_id = 0, second_id = 1;
  CUstreamCaptureStatus status;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  std::size_t count = 0;
  REQUIRE_OK(cuStreamGetCaptureInfo(streams.first, &status, &first_id, nullptr, nullptr, nullptr, nullptr));
  REQUIRE_OK(cuStreamGetCaptureInfo(streams.second, &status, &second_id, &graph, &dependencies, nullptr, &count));
  REQUIRE(first_id == second_id);
  REQUIRE(count == 1);
  REQUIRE_OK(Launch(kernel, streams.second));
  REQUIRE_OK(Launch(kernel, streams.first));
  streams.Join();
  REQUIRE_OK(Launch(kernel, streams.first));
  REQUIRE(cuEventQuery(streams.event) == CUDA_ERROR_CAPTURED_EVENT);
  REQUIRE_OK(cuStreamEndCapture(streams.first, &graph));
  REQUIRE(NodeCount(graph) == 4);
  std::size_t edges = 0;
  REQUIRE_OK(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  REQUIRE(edges == 4);  // a diamond
  REQUIRE_OK(cuStreamIsCapturing(streams.second, &status));
  REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE);
  REQUIRE_OK(cuGraphDestroy(graph));
}

TEST_CASE("Captures that go wrong say how") {
  const TestContext context;
  CapturedStreams streams;
  const CUfunction kernel = TestKernel();
  CUgraph graph = nullptr;
  REQUIRE(cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  REQUIRE(cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  REQUIRE_OK(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  SECTION("work that was not joined") {
    streams.Fork();
    REQUIRE_OK(Launch(kernel, streams.second));
    REQUIRE(cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
  SECTION("a synchronisation") {
    REQUIRE(cuStreamSynchronize(streams.first) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REQUIRE(Launch(kernel, streams.first) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    REQUIRE(cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  SECTION("the wrong stream") {
    streams.Fork();
    REQUIRE(cuStreamEndCapture(streams.second, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    REQUIRE(cuStreamEndCapture(streams.first, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  REQUIRE(graph == nullptr);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  REQUIRE_OK(cuStreamIsCapturing(streams.first, &status));
  REQUIRE(status == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("Memory of a graph is taken at its first launch and kept until it is trimmed") {
  const TestContext context;
  CapturedStreams streams;
  REQUIRE_OK(cuDeviceGraphMemTrim(0));
  const std::uint64_t before = UsedBytes();
  CUdeviceptr address = 0;
  REQUIRE_OK(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  REQUIRE_OK(cuMemAllocAsync(&address, 10 * kTestMiB, streams.first));
  REQUIRE_OK(cuMemFreeAsync(address, streams.first));
  CUgraph graph = nullptr;
  REQUIRE_OK(cuStreamEndCapture(streams.first, &graph));
  CUgraphExec exec = nullptr;
  REQUIRE_OK(cuGraphInstantiate(&exec, graph, 0));
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(cuGraphLaunch(exec, streams.first));
  REQUIRE(UsedBytes() == before + 10 * kTestMiB);
  cuuint64_t bytes = 1;
  REQUIRE_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &bytes));
  REQUIRE(bytes == 0);
  REQUIRE_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes));
  REQUIRE(bytes == 10 * kTestMiB);
  REQUIRE_OK(cuDeviceGraphMemTrim(0));
  REQUIRE(UsedBytes() == before);
  REQUIRE_OK(cuGraphLaunch(exec, streams.first));
  REQUIRE_OK(cuGraphExecDestroy(exec));
  REQUIRE_OK(cuGraphDestroy(graph));
  REQUIRE(UsedBytes() == before);
}

TEST_CASE("What a launch allocated lives until it is freed, even without its graph") {
  const TestContext context;
  CapturedStreams streams;
  const std::uint64_t before = UsedBytes();
  CUdeviceptr address = 0;
  REQUIRE_OK(cuStreamBeginCapture(streams.first, CU_STREAM_CAPTURE_MODE_GLOBAL));
  REQUIRE_OK(cuMemAllocAsync(&address, 10 * kTestMiB, streams.first));
  CUgraph graph = nullptr;
  REQUIRE_OK(cuStreamEndCapture(streams.first, &graph));
  CUgraphExec exec = nullptr;
  REQUIRE_OK(cuGraphInstantiate(&exec, graph, 0));
  REQUIRE_OK(cuGraphLaunch(exec, streams.first));
  REQUIRE_OK(cuGraphExecDestroy(exec));
  REQUIRE_OK(cuGraphDestroy(graph));
  REQUIRE(UsedBytes() == before + 10 * kTestMiB);
  REQUIRE_OK(cuMemFreeAsync(address, streams.first));
  REQUIRE(UsedBytes() == before);
  REQUIRE(cuMemFreeAsync(address, streams.first) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("A graph by hand: children, parameters, disabled nodes, objects it keeps") {
  const TestContext context;
  int order = 0, destroyed = 0;
  CUgraph graph = nullptr, child = nullptr;
  CUgraphNode a = nullptr, b = nullptr, nested = nullptr;
  REQUIRE_OK(cuGraphCreate(&graph, 0));
  REQUIRE_OK(cuGraphCreate(&child, 0));
  const CUDA_HOST_NODE_PARAMS times_ten = {.fn = [](void* n) { *static_cast<int*>(n) *= 10; }, .userData = &order};
  const CUDA_HOST_NODE_PARAMS plus_one = {.fn = [](void* n) { *static_cast<int*>(n) += 1; }, .userData = &order};
  REQUIRE_OK(cuGraphAddHostNode(&nested, child, nullptr, 0, &plus_one));
  REQUIRE_OK(cuGraphAddHostNode(&a, graph, nullptr, 0, &times_ten));
  REQUIRE_OK(cuGraphAddChildGraphNode(&b, graph, nullptr, 0, child));
  REQUIRE_OK(cuGraphAddDependencies(graph, &b, &a, nullptr, 1));  // made later, runs earlier
  CUuserObject object = nullptr;
  REQUIRE_OK(cuUserObjectCreate(
      &object, &destroyed, [](void* n) { ++*static_cast<int*>(n); }, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  REQUIRE_OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  CUgraphExec exec = nullptr;
  REQUIRE_OK(cuGraphInstantiate(&exec, graph, 0));
  REQUIRE_OK(cuGraphLaunch(exec, nullptr));
  REQUIRE(order == 10);
  REQUIRE_OK(cuGraphNodeSetEnabled(exec, a, 0));
  REQUIRE_OK(cuGraphLaunch(exec, nullptr));
  REQUIRE(order == 11);
  REQUIRE_OK(cuGraphAddDependencies(graph, &a, &b, nullptr, 1));
  CUgraphExec cyclic = nullptr;
  REQUIRE(cuGraphInstantiate(&cyclic, graph, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE_OK(cuGraphDestroy(graph));
  REQUIRE(destroyed == 0);  // the instance keeps it
  REQUIRE_OK(cuGraphExecDestroy(exec));
  REQUIRE(destroyed == 1);
  REQUIRE_OK(cuGraphDestroy(child));
}

}  // namespace
}  // namespace simgpu
