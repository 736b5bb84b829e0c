// cuBLASLt: descriptors, one algorithm for every product, and the product itself as one kernel.
#include <cstring>
#include <new>

#pragma GCC visibility push(default)
#include <cublasLt.h>
#pragma GCC visibility pop

#include "tools/simgpu/math/attribute_store.h"
#include "tools/simgpu/math/kernels.h"
#include "tools/simgpu/math/version.h"

using simgpu::math::AttributeStore;

struct cublasLtContext {};

namespace {

constexpr const char* kMatmulKernel = "simgpu_lt_gemm_kernel";
constexpr const char* kTransformKernel = "simgpu_lt_matrix_transform_kernel";
constexpr int kAlgorithmId = 1;

template <class Descriptor>
cublasStatus_t Initialise(Descriptor descriptor, size_t size) {
  if (descriptor == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  AttributeStore(descriptor).Initialise(size);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Descriptor>
cublasStatus_t Create(Descriptor* descriptor) {
  if (descriptor == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *descriptor = static_cast<Descriptor>(::operator new(AttributeStore::kBytes));
  return Initialise(*descriptor, AttributeStore::kBytes);
}

template <class Descriptor>
cublasStatus_t Destroy(Descriptor descriptor) {
  ::operator delete(static_cast<void*>(descriptor));
  return CUBLAS_STATUS_SUCCESS;
}

template <class Descriptor, class Attribute>
cublasStatus_t Set(Descriptor descriptor, Attribute attribute, const void* value, size_t size) {
  if (descriptor == nullptr || value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  AttributeStore(descriptor).Set(attribute, value, size);
  return CUBLAS_STATUS_SUCCESS;
}

template <class Descriptor, class Attribute>
cublasStatus_t Get(Descriptor descriptor, Attribute attribute, void* value, size_t size, size_t* written) {
  if (descriptor == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  return AttributeStore(descriptor).Get(attribute, value, size, written) ? CUBLAS_STATUS_SUCCESS
                                                                         : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t Launch(const char* kernel, cudaStream_t stream) {
  return simgpu::math::LaunchKernel(kernel, stream) == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                                                   : CUBLAS_STATUS_EXECUTION_FAILED;
}

// The one algorithm there is. It wants no workspace; the caller's is ignored.
void DescribeAlgorithm(cublasLtMatmulHeuristicResult_t* result) {
  std::memset(result, 0, sizeof(*result));
  result->algo.data[0] = kAlgorithmId;
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1;
}

constexpr simgpu::math::Version kVersion = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }

cublasStatus_t cublasLtGetProperty(libraryPropertyType type, int* value) {
  if (value == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *value = kVersion.Part(type);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
                              void*, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, size_t,
                              cudaStream_t stream) {
  return Launch(kMatmulKernel, stream);
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t, cublasLtMatrixTransformDesc_t, const void*, const void*,
                                       cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*,
                                       cublasLtMatrixLayout_t, cudaStream_t stream) {
  return Launch(kTransformKernel, stream);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  if (requested < 1 || results == nullptr || returned == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  DescribeAlgorithm(&results[0]);
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                        cudaDataType_t, cudaDataType_t, cudaDataType_t, int requested, int ids[],
                                        int* returned) {
  if (requested < 1 || ids == nullptr || returned == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  ids[0] = kAlgorithmId;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t, cublasComputeType_t, cudaDataType_t, cudaDataType_t,
                                      cudaDataType_t, cudaDataType_t, cudaDataType_t, int id,
                                      cublasLtMatmulAlgo_t* algo) {
  if (algo == nullptr || id != kAlgorithmId) return CUBLAS_STATUS_INVALID_VALUE;
  *algo = {};
  algo->data[0] = kAlgorithmId;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  if (algo == nullptr || result == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  DescribeAlgorithm(result);
  result->algo = *algo;
  return CUBLAS_STATUS_SUCCESS;
}

// The algorithm has nothing to configure but its id.
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t* algo, cublasLtMatmulAlgoConfigAttributes_t,
                                                    const void*, size_t) {
  return algo == nullptr ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t, void* value, size_t size,
                                                    size_t* written) {
  if (algo == nullptr || (value == nullptr && size != 0)) return CUBLAS_STATUS_INVALID_VALUE;
  if (value != nullptr) std::memset(value, 0, size);
  if (written != nullptr) *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t* algo, cublasLtMatmulAlgoCapAttributes_t,
                                                 void* value, size_t size, size_t* written) {
  if (algo == nullptr || (value == nullptr && size != 0)) return CUBLAS_STATUS_INVALID_VALUE;
  if (value != nullptr) std::memset(value, 0, size);
  if (written != nullptr) *written = size;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType, uint64_t,
                                                 uint64_t, int64_t) {
  return Initialise(layout, size);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  const cublasStatus_t created = Create(layout);
  if (created != CUBLAS_STATUS_SUCCESS) return created;
  AttributeStore store(*layout);
  store.Set(CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof(type));
  store.Set(CUBLASLT_MATRIX_LAYOUT_ROWS, &rows, sizeof(rows));
  store.Set(CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof(columns));
  store.Set(CUBLASLT_MATRIX_LAYOUT_LD, &leading, sizeof(leading));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return Destroy(layout); }

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t size) {
  return Set(layout, attribute, value, size);
}

cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, void* value, size_t size,
                                                size_t* written) {
  return Get(layout, attribute, value, size, written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t desc, size_t size, cublasComputeType_t,
                                               cudaDataType_t) {
  return Initialise(desc, size);
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute_type,
                                        cudaDataType_t scale_type) {
  const cublasStatus_t created = Create(desc);
  if (created != CUBLAS_STATUS_SUCCESS) return created;
  AttributeStore store(*desc);
  store.Set(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, &compute_type, sizeof(compute_type));
  store.Set(CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale_type, sizeof(scale_type));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return Destroy(desc); }

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  return Set(desc, attribute, value, size);
}

cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              void* value, size_t size, size_t* written) {
  return Get(desc, attribute, value, size, written);
}

cublasStatus_t cublasLtMatrixTransformDescInit_internal(cublasLtMatrixTransformDesc_t desc, size_t size, cudaDataType) {
  return Initialise(desc, size);
}

cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t* desc, cudaDataType scale_type) {
  const cublasStatus_t created = Create(desc);
  if (created != CUBLAS_STATUS_SUCCESS) return created;
  return Set(*desc, CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, &scale_type, sizeof(scale_type));
}

cublasStatus_t cublasLtMatrixTransformDescDestroy(cublasLtMatrixTransformDesc_t desc) { return Destroy(desc); }

cublasStatus_t cublasLtMatrixTransformDescSetAttribute(cublasLtMatrixTransformDesc_t desc,
                                                       cublasLtMatrixTransformDescAttributes_t attribute,
                                                       const void* value, size_t size) {
  return Set(desc, attribute, value, size);
}

cublasStatus_t cublasLtMatrixTransformDescGetAttribute(cublasLtMatrixTransformDesc_t desc,
                                                       cublasLtMatrixTransformDescAttributes_t attribute, void* value,
                                                       size_t size, size_t* written) {
  return Get(desc, attribute, value, size, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size) {
  return Initialise(preference, size);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) { return Create(preference); }

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return Destroy(preference); }

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t size) {
  return Set(preference, attribute, value, size);
}

cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, void* value,
                                                    size_t size, size_t* written) {
  return Get(preference, attribute, value, size, written);
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_NOT_SUCCESSFUL";
}

const char* cublasLtGetStatusString(cublasStatus_t status) { return cublasLtGetStatusName(status); }

}  // extern "C"
