// cuBLAS, cuBLASLt and cuDNN as a program that links them sees them, beside a runtime of its own.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <catch2/catch.hpp>

namespace {

size_t FreeBytes() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  REQUIRE(cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess);
  return free_bytes;
}

// How many nodes the calls of `body` put into a graph that is captured from the stream.
template <class Body>
size_t CapturedNodes(cudaStream_t stream, Body body) {
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  body();
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  size_t nodes = 0;
  REQUIRE(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
  REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  return nodes;
}

}  // namespace

TEST_CASE("A cuBLAS handle holds device memory of its own while it lives") {
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  const size_t before = FreeBytes();
  cublasHandle_t handle = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(FreeBytes() < before);
  REQUIRE(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  CHECK(FreeBytes() == before);
}

TEST_CASE("A matrix product runs as one kernel on the handle's stream") {
  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  cudaStream_t set = nullptr;
  REQUIRE(cublasGetStream(handle, &set) == CUBLAS_STATUS_SUCCESS);
  CHECK(set == stream);
  const float one = 1;
  const size_t nodes = CapturedNodes(stream, [&] {
    CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, nullptr, 4, nullptr, 4, &one, nullptr, 4) ==
          CUBLAS_STATUS_SUCCESS);
  });
  CHECK(nodes == 1);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("A matrix comes back from the device as it was sent, whatever its leading dimensions") {
  const float sent[6] = {1, 2, 3, 4, 5, 6};  // 2 rows, 3 columns
  float received[6] = {};
  void* device = nullptr;
  REQUIRE(cudaMalloc(&device, 4 * 3 * sizeof(float)) == cudaSuccess);
  REQUIRE(cublasSetMatrix(2, 3, sizeof(float), sent, 2, device, 4) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasGetMatrix(2, 3, sizeof(float), device, 4, received, 2) == CUBLAS_STATUS_SUCCESS);
  for (int i = 0; i < 6; ++i) CHECK(received[i] == sent[i]);
  REQUIRE(cudaFree(device) == cudaSuccess);
}

TEST_CASE("cuBLASLt offers one algorithm and remembers what a descriptor was told") {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
  const cublasOperation_t transpose = CUBLAS_OP_T;
  REQUIRE(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof(transpose)) ==
          CUBLAS_STATUS_SUCCESS);
  cublasOperation_t read = CUBLAS_OP_N;
  size_t written = 0;
  REQUIRE(cublasLtMatmulDescGetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &read, sizeof(read), &written) ==
          CUBLAS_STATUS_SUCCESS);
  CHECK(read == transpose);
  CHECK(written == sizeof(transpose));
  cublasLtMatmulHeuristicResult_t results[3];
  int returned = 0;
  REQUIRE(cublasLtMatmulAlgoGetHeuristic(handle, desc, nullptr, nullptr, nullptr, nullptr, preference, 3, results,
                                         &returned) == CUBLAS_STATUS_SUCCESS);
  CHECK(returned == 1);
  CHECK(results[0].state == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulPreferenceDestroy(preference) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescDestroy(desc) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("A cuDNN graph runs as one kernel, and its descriptors give back what was set") {
  cudnnHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  REQUIRE(cudnnCreate(&handle) == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS);
  cudnnBackendDescriptor_t tensor = nullptr;
  REQUIRE(cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &tensor) == CUDNN_STATUS_SUCCESS);
  const int64_t dims[3] = {2, 3, 5};
  REQUIRE(cudnnBackendSetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 3, dims) ==
          CUDNN_STATUS_SUCCESS);
  int64_t read[8] = {};
  int64_t count = 0;
  REQUIRE(cudnnBackendGetAttribute(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8, &count, read) ==
          CUDNN_STATUS_SUCCESS);
  CHECK(count == 3);
  CHECK(read[2] == 5);
  CHECK(CapturedNodes(stream, [&] { CHECK(cudnnBackendExecute(handle, tensor, tensor) == CUDNN_STATUS_SUCCESS); }) ==
        1);
  REQUIRE(cudnnBackendDestroyDescriptor(tensor) == CUDNN_STATUS_SUCCESS);
  REQUIRE(cudaStreamDestroy(stream) == cudaSuccess);
  REQUIRE(cudnnDestroy(handle) == CUDNN_STATUS_SUCCESS);
}
