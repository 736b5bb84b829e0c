// cuDNN's classic routines: convolutions' choice of algorithm, workspace sizes, and the computations as one kernel
// each.
#include "tools/simgpu/math/cudnn_handle.h"

namespace {

// One algorithm is offered for each direction: the first, which exists for every shape.
template <class Performance>
cudnnStatus_t OfferOneAlgorithm(int requested, int* returned, Performance* results) {
  if (requested < 1 || returned == nullptr || results == nullptr) return CUDNN_STATUS_BAD_PARAM;
  results[0] = {};
  results[0].status = CUDNN_STATUS_SUCCESS;
  results[0].memory = simgpu::math::CudnnWorkspaceBytes();
  results[0].mathType = CUDNN_TENSOR_OP_MATH;
  *returned = 1;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GiveSize(size_t value, size_t* bytes) {
  if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM;
  *bytes = value;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t GiveWorkspace(size_t* bytes) { return GiveSize(simgpu::math::CudnnWorkspaceBytes(), bytes); }

}  // namespace

// The definitions below and the generated ones keep the header's parameters and use few of them.
#pragma GCC diagnostic ignored "-Wunused-parameter"
using simgpu::math::RunCudnn;

extern "C" {

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(cudnnHandle_t, const cudnnTensorDescriptor_t, const void*,
                                                     const cudnnFilterDescriptor_t, const void*,
                                                     const cudnnConvolutionDescriptor_t, const cudnnTensorDescriptor_t,
                                                     void*, const int requested, int* returned,
                                                     cudnnConvolutionFwdAlgoPerf_t* results, void*, size_t) {
  return OfferOneAlgorithm(requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(cudnnHandle_t, const cudnnFilterDescriptor_t, const void*,
                                                          const cudnnTensorDescriptor_t, const void*,
                                                          const cudnnConvolutionDescriptor_t,
                                                          const cudnnTensorDescriptor_t, void*, const int requested,
                                                          int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results,
                                                          void*, size_t) {
  return OfferOneAlgorithm(requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(cudnnHandle_t, const cudnnTensorDescriptor_t, const void*,
                                                            const cudnnTensorDescriptor_t, const void*,
                                                            const cudnnConvolutionDescriptor_t,
                                                            const cudnnFilterDescriptor_t, void*, const int requested,
                                                            int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results,
                                                            void*, size_t) {
  return OfferOneAlgorithm(requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                     const cudnnFilterDescriptor_t, const cudnnConvolutionDescriptor_t,
                                                     const cudnnTensorDescriptor_t, const int requested, int* returned,
                                                     cudnnConvolutionFwdAlgoPerf_t* results) {
  return OfferOneAlgorithm(requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t,
                                                          const cudnnTensorDescriptor_t,
                                                          const cudnnConvolutionDescriptor_t,
                                                          const cudnnTensorDescriptor_t, const int requested,
                                                          int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
  return OfferOneAlgorithm(requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnConvolutionDescriptor_t,
    const cudnnFilterDescriptor_t, const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
  return OfferOneAlgorithm(requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                      const cudnnFilterDescriptor_t, const cudnnConvolutionDescriptor_t,
                                                      const cudnnTensorDescriptor_t, cudnnConvolutionFwdAlgo_t,
                                                      size_t* bytes) {
  return GiveWorkspace(bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t, const cudnnFilterDescriptor_t,
                                                           const cudnnTensorDescriptor_t,
                                                           const cudnnConvolutionDescriptor_t,
                                                           const cudnnTensorDescriptor_t, cudnnConvolutionBwdDataAlgo_t,
                                                           size_t* bytes) {
  return GiveWorkspace(bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t, const cudnnTensorDescriptor_t,
                                                             const cudnnTensorDescriptor_t,
                                                             const cudnnConvolutionDescriptor_t,
                                                             const cudnnFilterDescriptor_t,
                                                             cudnnConvolutionBwdFilterAlgo_t, size_t* bytes) {
  return GiveWorkspace(bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnActivationDescriptor_t, size_t* bytes) {
  return GiveWorkspace(bytes);
}

cudnnStatus_t cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    cudnnHandle_t, cudnnBatchNormMode_t, cudnnBatchNormOps_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t,
    const cudnnTensorDescriptor_t, const cudnnTensorDescriptor_t, const cudnnActivationDescriptor_t, size_t* bytes) {
  return GiveWorkspace(bytes);
}

// Without a fused activation there is nothing to reserve between forward and backward.
cudnnStatus_t cudnnGetBatchNormalizationTrainingExReserveSpaceSize(cudnnHandle_t, cudnnBatchNormMode_t,
                                                                   cudnnBatchNormOps_t,
                                                                   const cudnnActivationDescriptor_t,
                                                                   const cudnnTensorDescriptor_t, size_t* bytes) {
  return GiveSize(0, bytes);
}

#include "cudnn_routines.inc"

}  // extern "C"
