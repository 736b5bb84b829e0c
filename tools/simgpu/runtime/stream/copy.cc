// Linear copies and fills.
#include "tools/simgpu/runtime/registry.h"
#include "tools/simgpu/runtime/stream_api.h"

using namespace simgpu::runtime;

namespace {

// The variable's address on the device, `offset` bytes in.
cudaError_t SymbolAddress(const void* symbol, size_t offset, void** address) {
  const cudaError_t ready = EnsureContext();
  if (ready != cudaSuccess) return ready;
  size_t size = 0;
  const cudaError_t found = Registry::Get().FindVariable(symbol, address, &size);
  if (found == cudaSuccess) *address = static_cast<char*>(*address) + offset;
  return found;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* destination, const void* source, size_t count, cudaMemcpyKind kind) {
  if (count == 0) return Record(EnsureContext());
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ForwardStream<&StreamFunctions::cuMemcpyHtoD>(destination, source, count);
    case cudaMemcpyDeviceToHost:
      return ForwardStream<&StreamFunctions::cuMemcpyDtoH>(destination, source, count);
    case cudaMemcpyDeviceToDevice:
      return ForwardStream<&StreamFunctions::cuMemcpyDtoD>(destination, source, count);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return ForwardStream<&StreamFunctions::cuMemcpy>(destination, source, count);
  }
  return Record(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t count, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (count == 0) return Record(EnsureContext());
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return ForwardStream<&StreamFunctions::cuMemcpyHtoDAsync>(destination, source, count, stream);
    case cudaMemcpyDeviceToHost:
      return ForwardStream<&StreamFunctions::cuMemcpyDtoHAsync>(destination, source, count, stream);
    case cudaMemcpyDeviceToDevice:
      return ForwardStream<&StreamFunctions::cuMemcpyDtoDAsync>(destination, source, count, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
      return ForwardStream<&StreamFunctions::cuMemcpyAsync>(destination, source, count, stream);
  }
  return Record(cudaErrorInvalidMemcpyDirection);
}

cudaError_t cudaMemcpyBatchAsync(void* const* destinations, const void* const* sources, const size_t* sizes,
                                 size_t count, cudaMemcpyAttributes* attributes, size_t* attribute_indices,
                                 size_t attribute_count, cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemcpyBatchAsync>(destinations, sources, sizes, count, attributes,
                                                             attribute_indices, attribute_count, stream);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t count, size_t offset,
                               cudaMemcpyKind kind) {
  void* address = nullptr;
  const cudaError_t found = SymbolAddress(symbol, offset, &address);
  return found != cudaSuccess ? Record(found) : cudaMemcpy(address, source, count, kind);
}

cudaError_t cudaMemcpyFromSymbol(void* destination, const void* symbol, size_t count, size_t offset,
                                 cudaMemcpyKind kind) {
  void* address = nullptr;
  const cudaError_t found = SymbolAddress(symbol, offset, &address);
  return found != cudaSuccess ? Record(found) : cudaMemcpy(destination, address, count, kind);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t count, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
  void* address = nullptr;
  const cudaError_t found = SymbolAddress(symbol, offset, &address);
  return found != cudaSuccess ? Record(found) : cudaMemcpyAsync(address, source, count, kind, stream);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* destination, const void* symbol, size_t count, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  void* address = nullptr;
  const cudaError_t found = SymbolAddress(symbol, offset, &address);
  return found != cudaSuccess ? Record(found) : cudaMemcpyAsync(destination, address, count, kind, stream);
}

cudaError_t cudaMemset(void* pointer, int value, size_t count) {
  if (count == 0) return Record(EnsureContext());
  return ForwardStream<&StreamFunctions::cuMemsetD8>(pointer, value, count);
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t count, cudaStream_t stream) {
  if (count == 0) return Record(EnsureContext());
  return ForwardStream<&StreamFunctions::cuMemsetD8Async>(pointer, value, count, stream);
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
  return ForwardStream<&StreamFunctions::cuMemsetD2D8>(pointer, pitch, value, width, height);
}

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return ForwardStream<&StreamFunctions::cuMemsetD2D8Async>(pointer, pitch, value, width, height, stream);
}

// The slices of a 3D range need not follow each other without gaps, so they are filled one by one.
cudaError_t cudaMemset3DAsync(cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream) {
  for (size_t z = 0; z < extent.depth; ++z) {
    char* slice = static_cast<char*>(pitched.ptr) + z * pitched.pitch * pitched.ysize;
    const cudaError_t filled = cudaMemset2DAsync(slice, pitched.pitch, value, extent.width, extent.height, stream);
    if (filled != cudaSuccess) return filled;
  }
  return cudaSuccess;
}

cudaError_t cudaMemset3D(cudaPitchedPtr pitched, int value, cudaExtent extent) {
  for (size_t z = 0; z < extent.depth; ++z) {
    char* slice = static_cast<char*>(pitched.ptr) + z * pitched.pitch * pitched.ysize;
    const cudaError_t filled = cudaMemset2D(slice, pitched.pitch, value, extent.width, extent.height);
    if (filled != cudaSuccess) return filled;
  }
  return cudaSuccess;
}

}  // extern "C"
