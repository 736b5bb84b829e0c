// Copies of two and three dimensions, and of arrays: all of them are one driver call, described by a 3D copy.
#include "tools/simgpu/runtime/array.h"
#include "tools/simgpu/runtime/stream_api.h"

using namespace simgpu::runtime;

namespace {

cudaPitchedPtr Pitched(const void* pointer, size_t pitch, size_t width, size_t height) {
  return {const_cast<void*>(pointer), pitch, width, height};
}

// Rows of `width` bytes between two linear ranges.
cudaMemcpy3DParms LinearRows(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                             size_t width, size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = Pitched(source, source_pitch, width, height);
  copy.dstPtr = Pitched(destination, destination_pitch, width, height);
  copy.extent = {width, height, 1};
  copy.kind = kind;
  return copy;
}

// Arrays count in elements, these interfaces in bytes.
size_t InElements(cudaArray_const_t array, size_t bytes) {
  return bytes / ElementSize(reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array)));
}

cudaMemcpy3DParms ToArray(cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch, size_t width,
                          size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = Pitched(source, pitch, width, height);
  copy.dstArray = array;
  copy.dstPos = {InElements(array, x), y, 0};
  copy.extent = {InElements(array, width), height, 1};
  copy.kind = kind;
  return copy;
}

cudaMemcpy3DParms FromArray(void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y, size_t width,
                            size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = {};
  copy.srcArray = const_cast<cudaArray_t>(array);
  copy.srcPos = {InElements(array, x), y, 0};
  copy.dstPtr = Pitched(destination, pitch, width, height);
  copy.extent = {InElements(array, width), height, 1};
  copy.kind = kind;
  return copy;
}

cudaError_t Copy(const cudaMemcpy3DParms& copy) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  const CUDA_MEMCPY3D params = DriverCopy(copy);
  return ForwardStream<&StreamFunctions::cuMemcpy3D>(&params);
}

cudaError_t CopyAsync(const cudaMemcpy3DParms& copy, cudaStream_t stream) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return Record(ready);
  const CUDA_MEMCPY3D params = DriverCopy(copy);
  return ForwardStream<&StreamFunctions::cuMemcpy3DAsync>(&params, stream);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy2D(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return Copy(LinearRows(destination, destination_pitch, source, source_pitch, width, height, kind));
}

cudaError_t cudaMemcpy2DAsync(void* destination, size_t destination_pitch, const void* source, size_t source_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyAsync(LinearRows(destination, destination_pitch, source, source_pitch, width, height, kind), stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
  return Copy(ToArray(array, x, y, source, pitch, width, height, kind));
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t array, size_t x, size_t y, const void* source, size_t pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyAsync(ToArray(array, x, y, source, pitch, width, height, kind), stream);
}

cudaError_t cudaMemcpy2DFromArray(void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y,
                                  size_t width, size_t height, cudaMemcpyKind kind) {
  return Copy(FromArray(destination, pitch, array, x, y, width, height, kind));
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* destination, size_t pitch, cudaArray_const_t array, size_t x, size_t y,
                                       size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyAsync(FromArray(destination, pitch, array, x, y, width, height, kind), stream);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t destination, size_t destination_x, size_t destination_y,
                                     cudaArray_const_t source, size_t source_x, size_t source_y, size_t width,
                                     size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms copy = {};
  copy.srcArray = const_cast<cudaArray_t>(source);
  copy.srcPos = {InElements(source, source_x), source_y, 0};
  copy.dstArray = destination;
  copy.dstPos = {InElements(destination, destination_x), destination_y, 0};
  copy.extent = {InElements(source, width), height, 1};
  copy.kind = kind;
  return Copy(copy);
}

cudaError_t cudaMemcpyToArray(cudaArray_t array, size_t x, size_t y, const void* source, size_t count,
                              cudaMemcpyKind kind) {
  return Copy(ToArray(array, x, y, source, count, count, 1, kind));
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t array, size_t x, size_t y, const void* source, size_t count,
                                   cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyAsync(ToArray(array, x, y, source, count, count, 1, kind), stream);
}

cudaError_t cudaMemcpyFromArray(void* destination, cudaArray_const_t array, size_t x, size_t y, size_t count,
                                cudaMemcpyKind kind) {
  return Copy(FromArray(destination, count, array, x, y, count, 1, kind));
}

cudaError_t cudaMemcpyFromArrayAsync(void* destination, cudaArray_const_t array, size_t x, size_t y, size_t count,
                                     cudaMemcpyKind kind, cudaStream_t stream) {
  return CopyAsync(FromArray(destination, count, array, x, y, count, 1, kind), stream);
}

cudaError_t cudaMemcpyArrayToArray(cudaArray_t destination, size_t destination_x, size_t destination_y,
                                   cudaArray_const_t source, size_t source_x, size_t source_y, size_t count,
                                   cudaMemcpyKind kind) {
  return cudaMemcpy2DArrayToArray(destination, destination_x, destination_y, source, source_x, source_y, count, 1,
                                  kind);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) {
  return copy == nullptr ? Record(cudaErrorInvalidValue) : Copy(*copy);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
  return copy == nullptr ? Record(cudaErrorInvalidValue) : CopyAsync(*copy, stream);
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* copy) {
  if (copy == nullptr) return Record(cudaErrorInvalidValue);
  CUDA_MEMCPY3D_PEER params;
  const cudaError_t translated = DriverPeerCopy(*copy, &params);
  return translated != cudaSuccess ? Record(translated) : ForwardStream<&StreamFunctions::cuMemcpy3DPeer>(&params);
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* copy, cudaStream_t stream) {
  if (copy == nullptr) return Record(cudaErrorInvalidValue);
  CUDA_MEMCPY3D_PEER params;
  const cudaError_t translated = DriverPeerCopy(*copy, &params);
  return translated != cudaSuccess ? Record(translated)
                                   : ForwardStream<&StreamFunctions::cuMemcpy3DPeerAsync>(&params, stream);
}

}  // extern "C"
