// cuBLAS's copies of vectors and matrices between host and device, which are strided copies of the runtime.
#include <cuda_runtime_api.h>

#include <cstdint>

#include "tools/simgpu/math/cublas_handle.h"

using simgpu::math::FromCuda;

namespace {

// A vector with an increment is a matrix of one row per element.
cublasStatus_t CopyVector(std::int64_t n, std::int64_t element_size, const void* source, std::int64_t source_step,
                          void* destination, std::int64_t destination_step, cudaMemcpyKind kind, cudaStream_t stream) {
  if (n < 0 || element_size <= 0 || source_step <= 0 || destination_step <= 0) return CUBLAS_STATUS_INVALID_VALUE;
  const auto bytes = static_cast<size_t>(element_size);
  return FromCuda(cudaMemcpy2DAsync(destination, bytes * static_cast<size_t>(destination_step), source,
                                    bytes * static_cast<size_t>(source_step), bytes, static_cast<size_t>(n), kind,
                                    stream));
}

// Matrices are stored by columns.
cublasStatus_t CopyMatrix(std::int64_t rows, std::int64_t columns, std::int64_t element_size, const void* source,
                          std::int64_t source_rows, void* destination, std::int64_t destination_rows,
                          cudaMemcpyKind kind, cudaStream_t stream) {
  if (rows < 0 || columns < 0 || element_size <= 0 || source_rows <= 0 || destination_rows <= 0) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const auto bytes = static_cast<size_t>(element_size);
  return FromCuda(cudaMemcpy2DAsync(destination, bytes * static_cast<size_t>(destination_rows), source,
                                    bytes * static_cast<size_t>(source_rows), bytes * static_cast<size_t>(rows),
                                    static_cast<size_t>(columns), kind, stream));
}

// The forms without a stream return when the copy is done.
cublasStatus_t Finish(cublasStatus_t status) {
  return status != CUBLAS_STATUS_SUCCESS ? status : FromCuda(cudaStreamSynchronize(nullptr));
}

}  // namespace

extern "C" {

cublasStatus_t cublasSetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy, cudaStream_t stream) {
  return CopyVector(n, size, x, incx, y, incy, cudaMemcpyHostToDevice, stream);
}

cublasStatus_t cublasGetVectorAsync(int n, int size, const void* x, int incx, void* y, int incy, cudaStream_t stream) {
  return CopyVector(n, size, x, incx, y, incy, cudaMemcpyDeviceToHost, stream);
}

cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int size, const void* a, int lda, void* b, int ldb,
                                    cudaStream_t stream) {
  return CopyMatrix(rows, columns, size, a, lda, b, ldb, cudaMemcpyHostToDevice, stream);
}

cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int size, const void* a, int lda, void* b, int ldb,
                                    cudaStream_t stream) {
  return CopyMatrix(rows, columns, size, a, lda, b, ldb, cudaMemcpyDeviceToHost, stream);
}

cublasStatus_t cublasSetVector(int n, int size, const void* x, int incx, void* y, int incy) {
  return Finish(CopyVector(n, size, x, incx, y, incy, cudaMemcpyHostToDevice, nullptr));
}

cublasStatus_t cublasGetVector(int n, int size, const void* x, int incx, void* y, int incy) {
  return Finish(CopyVector(n, size, x, incx, y, incy, cudaMemcpyDeviceToHost, nullptr));
}

cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) {
  return Finish(CopyMatrix(rows, columns, size, a, lda, b, ldb, cudaMemcpyHostToDevice, nullptr));
}

cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void* a, int lda, void* b, int ldb) {
  return Finish(CopyMatrix(rows, columns, size, a, lda, b, ldb, cudaMemcpyDeviceToHost, nullptr));
}

}  // extern "C"
