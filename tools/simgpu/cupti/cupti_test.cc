// CUPTI as a profiler sees it, over the runtime and the driver of the platform.
#include <cuda_runtime_api.h>
#include <cupti.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

struct Record {
  CUpti_ActivityKind kind;
  std::string name;
  uint32_t correlation;
  uint64_t external_id;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
};

std::vector<Record>& Records() {
  static std::vector<Record> records;
  return records;
}

void RequestBuffer(uint8_t** buffer, size_t* size, size_t* max_records) {
  constexpr size_t kSize = 4096;  // small, so that one test fills several
  *buffer = static_cast<uint8_t*>(std::malloc(kSize));
  *size = kSize;
  *max_records = 0;
}

Record Read(const CUpti_Activity& activity) {
  Record record = {activity.kind, "", 0, 0, 0, 0, 0};
  if (activity.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
    const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(activity);
    record.name = kernel.name;
    record.correlation = kernel.correlationId;
    record.start = kernel.start;
    record.end = kernel.end;
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    const auto& memset = reinterpret_cast<const CUpti_ActivityMemset4&>(activity);
    record.correlation = memset.correlationId;
    record.bytes = memset.bytes;
  } else if (activity.kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) {
    const auto& external = reinterpret_cast<const CUpti_ActivityExternalCorrelation&>(activity);
    record.correlation = external.correlationId;
    record.external_id = external.externalId;
  }
  return record;
}

void CompleteBuffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* activity = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &activity) == CUPTI_SUCCESS) Records().push_back(Read(*activity));
  std::free(buffer);
}

std::vector<Record> OfKind(CUpti_ActivityKind kind) {
  std::vector<Record> found;
  for (const Record& record : Records()) {
    if (record.kind == kind) found.push_back(record);
  }
  return found;
}

cudaKernel_t LoadKernel(const char* name) {
  static const char image[] = "the image of a test's kernels";
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  REQUIRE(cudaLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0) == cudaSuccess);
  REQUIRE(cudaLibraryGetKernel(&kernel, library, name) == cudaSuccess);
  return kernel;
}

}  // namespace

TEST_CASE("Each launch is a kernel record, joined to the client's id of that moment") {
  Records().clear();
  const cudaKernel_t kernel = LoadKernel("a_kernel");
  REQUIRE(cuptiActivityRegisterCallbacks(RequestBuffer, CompleteBuffer) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) == CUPTI_SUCCESS);

  constexpr int kLaunches = 20;  // more than one buffer holds
  for (int i = 0; i < kLaunches; ++i) {
    REQUIRE(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0,
                                                   static_cast<uint64_t>(100 + i)) == CUPTI_SUCCESS);
    REQUIRE(cudaLaunchKernel(kernel, dim3(2), dim3(64), nullptr, 0, nullptr) == cudaSuccess);
    uint64_t popped = 0;
    REQUIRE(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &popped) == CUPTI_SUCCESS);
    CHECK(popped == static_cast<uint64_t>(100 + i));
  }
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);

  const std::vector<Record> kernels = OfKind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  const std::vector<Record> ids = OfKind(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  REQUIRE(kernels.size() == kLaunches);
  REQUIRE(ids.size() == kLaunches);
  for (size_t i = 0; i < kernels.size(); ++i) {
    CHECK(kernels[i].name == "a_kernel");
    CHECK(kernels[i].end >= kernels[i].start);
    CHECK(kernels[i].correlation == ids[i].correlation);
    CHECK(ids[i].external_id == 100 + i);
  }
}

TEST_CASE("A kind that is disabled leaves no records, others still do") {
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  Records().clear();
  const cudaKernel_t kernel = LoadKernel("another_kernel");
  void* pointer = nullptr;
  REQUIRE(cudaMalloc(&pointer, 1024) == cudaSuccess);
  REQUIRE(cudaLaunchKernel(kernel, dim3(1), dim3(32), nullptr, 0, nullptr) == cudaSuccess);
  REQUIRE(cudaMemsetAsync(pointer, 0, 1000, nullptr) == cudaSuccess);
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  CHECK(OfKind(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL).empty());
  REQUIRE(OfKind(CUPTI_ACTIVITY_KIND_MEMSET).size() == 1);
  CHECK(OfKind(CUPTI_ACTIVITY_KIND_MEMSET)[0].bytes == 1000);
  REQUIRE(cudaFree(pointer) == cudaSuccess);
  REQUIRE(cuptiFinalize() == CUPTI_SUCCESS);
}

TEST_CASE("An id that was never pushed can't be popped") {
  uint64_t id = 0;
  CHECK(cuptiActivityPopExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, &id) == CUPTI_ERROR_QUEUE_EMPTY);
}

TEST_CASE("A second subscriber is refused until the first one has left") {
  CUpti_SubscriberHandle first = nullptr;
  CUpti_SubscriberHandle second = nullptr;
  REQUIRE(cuptiSubscribe(&first, nullptr, nullptr) == CUPTI_SUCCESS);
  CHECK(cuptiSubscribe(&second, nullptr, nullptr) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK(cuptiEnableDomain(1, first, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_SUCCESS);
  REQUIRE(cuptiUnsubscribe(first) == CUPTI_SUCCESS);
  CHECK(cuptiEnableDomain(1, nullptr, CUPTI_CB_DOMAIN_RUNTIME_API) == CUPTI_ERROR_INVALID_PARAMETER);
  REQUIRE(cuptiSubscribe(&second, nullptr, nullptr) == CUPTI_SUCCESS);
  REQUIRE(cuptiUnsubscribe(second) == CUPTI_SUCCESS);
}

TEST_CASE("Calls and results have names") {
  const char* name = nullptr;
  REQUIRE(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, &name) ==
          CUPTI_SUCCESS);
  CHECK(name == std::string("cudaLaunchKernel_v7000"));
  REQUIRE(cuptiGetResultString(CUPTI_ERROR_INVALID_KIND, &name) == CUPTI_SUCCESS);
  CHECK(name == std::string("CUPTI_ERROR_INVALID_KIND"));
}
