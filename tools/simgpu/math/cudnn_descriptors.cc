// Descriptors of cuDNN's classic interface. Only shapes are ever read back; the rest is accepted and dropped, because
// the routines that would use it do nothing.
#include <algorithm>
#include <vector>

#include "tools/simgpu/math/cudnn_handle.h"

// The header declares these types and leaves them to the library.
struct cudnnTensorStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> dims;
  std::vector<int> strides;
};
struct cudnnFilterStruct {
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  std::vector<int> dims;
};
struct cudnnConvolutionStruct {};
struct cudnnActivationStruct {};
struct cudnnPoolingStruct {};
struct cudnnDropoutStruct {};
struct cudnnSpatialTransformerStruct {};
struct cudnnCTCLossStruct {};

namespace {

template <class Object>
cudnnStatus_t Create(Object** descriptor) {
  if (descriptor == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *descriptor = new Object;
  return CUDNN_STATUS_SUCCESS;
}

template <class Object>
cudnnStatus_t Destroy(Object* descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Accept(const void* descriptor) {
  return descriptor == nullptr ? CUDNN_STATUS_BAD_PARAM : CUDNN_STATUS_SUCCESS;
}

void CopyOut(const std::vector<int>& values, int room, int* out) {
  std::copy_n(values.begin(), std::min(values.size(), static_cast<size_t>(room)), out);
}

}  // namespace

extern "C" {

#define SIMGPU_DESCRIPTOR(Kind)                                                                         \
  cudnnStatus_t cudnnCreate##Kind##Descriptor(cudnn##Kind##Descriptor_t* desc) { return Create(desc); } \
  cudnnStatus_t cudnnDestroy##Kind##Descriptor(cudnn##Kind##Descriptor_t desc) { return Destroy(desc); }
SIMGPU_DESCRIPTOR(Tensor)
SIMGPU_DESCRIPTOR(Filter)
SIMGPU_DESCRIPTOR(Convolution)
SIMGPU_DESCRIPTOR(Activation)
SIMGPU_DESCRIPTOR(Pooling)
SIMGPU_DESCRIPTOR(Dropout)
SIMGPU_DESCRIPTOR(SpatialTransformer)
SIMGPU_DESCRIPTOR(CTCLoss)
#undef SIMGPU_DESCRIPTOR

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int rank, const int dims[],
                                         const int strides[]) {
  if (desc == nullptr || rank < 0) return CUDNN_STATUS_BAD_PARAM;
  desc->type = type;
  desc->dims.assign(dims, dims + rank);
  desc->strides.assign(strides, strides + rank);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t desc, int room, cudnnDataType_t* type, int* rank,
                                         int dims[], int strides[]) {
  if (desc == nullptr || room < 0) return CUDNN_STATUS_BAD_PARAM;
  *type = desc->type;
  *rank = static_cast<int>(desc->dims.size());
  CopyOut(desc->dims, room, dims);
  CopyOut(desc->strides, room, strides);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int rank, const int dims[]) {
  if (desc == nullptr || rank < 0) return CUDNN_STATUS_BAD_PARAM;
  desc->type = type;
  desc->format = format;
  desc->dims.assign(dims, dims + rank);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetFilterNdDescriptor(const cudnnFilterDescriptor_t desc, int room, cudnnDataType_t* type,
                                         cudnnTensorFormat_t* format, int* rank, int dims[]) {
  if (desc == nullptr || room < 0) return CUDNN_STATUS_BAD_PARAM;
  *type = desc->type;
  *format = desc->format;
  *rank = static_cast<int>(desc->dims.size());
  CopyOut(desc->dims, room, dims);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t desc, int, const int[], const int[],
                                              const int[], cudnnConvolutionMode_t, cudnnDataType_t) {
  return Accept(desc);
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int) { return Accept(desc); }

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t) { return Accept(desc); }

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc, cudnnActivationMode_t,
                                           cudnnNanPropagation_t, double) {
  return Accept(desc);
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t desc, cudnnPoolingMode_t, cudnnNanPropagation_t, int,
                                          int, int, int, int, int) {
  return Accept(desc);
}

cudnnStatus_t cudnnSetSpatialTransformerNdDescriptor(cudnnSpatialTransformerDescriptor_t desc, cudnnSamplerType_t,
                                                     cudnnDataType_t, int, const int[]) {
  return Accept(desc);
}

cudnnStatus_t cudnnDropoutGetStatesSize(cudnnHandle_t, size_t* bytes) {
  // One 48-byte generator state for each of 2,048 threads on each multiprocessor of the largest devices.
  constexpr size_t kStatesBytes = 48UL * 2048 * 132;
  *bytes = kStatesBytes;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle, float, void*, size_t,
                                        unsigned long long) {
  if (desc == nullptr) return CUDNN_STATUS_BAD_PARAM;
  return simgpu::math::RunCudnn(handle, "cudnn_dropout_states");
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t, float, void*, size_t,
                                            unsigned long long) {
  return Accept(desc);
}

}  // extern "C"
