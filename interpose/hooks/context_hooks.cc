// Calls that take device memory which no call names: contexts, modules, limits. The driver is asked what is in use
// after each, so that a report can name the growth. Also the calls that end everything on a device, and captures,
// during which the driver is not asked.
#include "interpose/core/driver_calls.h"
#include "interpose/hooks/hooks.h"
#include "interpose/hooks/memory_call.h"

namespace ledger::hooks {
namespace {

bool PrimaryContextIsActive(CUdevice device) {
  const DriverCalls& driver = Driver();
  unsigned int flags = 0;
  int active = 0;
  return driver.cuDevicePrimaryCtxGetState != nullptr &&
         driver.cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

// A new context is something that matters: it is the first that a process takes of a device.
void NoteContext(const Site& site, const CUcontext* context, CUdevice device) {
  if (context == nullptr || (!Active() && !Wake())) return;
  ErrnoSaver errno_saver;
  SampleContext(site.entry, *context, static_cast<std::int8_t>(device));
}

template <typename Function, typename... Arguments>
CUresult CreateContext(const Call<Function>& call, CUdevice device, CUcontext* context, Arguments... arguments) {
  const CUresult result = PassThrough(call, context, arguments...);
  if (result == CUDA_SUCCESS) NoteContext(call.site, context, device);
  return result;
}

// For what changes the device's use without saying by how much.
template <typename Function, typename... Arguments>
CUresult CallAndSample(const Call<Function>& call, Arguments... arguments) {
  const CUresult result = call.real(arguments...);
  if (result == CUDA_SUCCESS && Active()) {
    ErrnoSaver errno_saver;
    SampleDevice(call.site.entry);
  }
  return result;
}

template <typename Function, typename... Arguments>
auto BeginCapture(const Call<Function>& call, Arguments... arguments) {
  const auto result = PassThrough(call, arguments...);
  if (static_cast<int>(result) == 0 && InsideNoHook()) NoteCaptureBegin();
  return result;
}

template <typename Function, typename... Arguments>
auto EndCapture(const Call<Function>& call, Arguments... arguments) {
  const auto result = PassThrough(call, arguments...);
  // A capture that had been invalidated ends with an error; only "there was none" leaves the count as it is.
  if (static_cast<int>(result) != CUDA_ERROR_ILLEGAL_STATE && InsideNoHook()) NoteCaptureEnd();
  return result;
}

}  // namespace

CUresult DevicePrimaryCtxRetain(const Call<decltype(&::cuDevicePrimaryCtxRetain)>& call, CUcontext* context,
                                CUdevice device) {
  const bool was_active = PrimaryContextIsActive(device);
  const CUresult result = PassThrough(call, context, device);
  if (result == CUDA_SUCCESS && !was_active) NoteContext(call.site, context, device);
  return result;
}

CUresult DevicePrimaryCtxRelease(const Call<decltype(&::cuDevicePrimaryCtxRelease)>& call, CUdevice device) {
  const bool was_active = Active() && PrimaryContextIsActive(device);
  const CUresult result = PassThrough(call, device);
  if (result == CUDA_SUCCESS && was_active && InsideNoHook() && !PrimaryContextIsActive(device)) {
    NoteDeviceReset(static_cast<std::int8_t>(device), call.site.entry);
  }
  return result;
}

CUresult DevicePrimaryCtxReset(const Call<decltype(&::cuDevicePrimaryCtxReset)>& call, CUdevice device) {
  HookGuard guard;
  if (guard.outermost()) NoteDeviceReset(static_cast<std::int8_t>(device), call.site.entry);
  return call.real(device);
}

cudaError_t RuntimeDeviceReset(const Call<decltype(&::cudaDeviceReset)>& call) {
  HookGuard guard;
  if (guard.outermost() && Active()) NoteDeviceReset(CurrentDevice(), call.site.entry);
  return call.real();
}

CUresult CtxCreateV2(const Call<decltype(&::cuCtxCreate_v2)>& call, CUcontext* context, unsigned int flags,
                     CUdevice device) {
  return CreateContext(call, device, context, flags, device);
}

CUresult CtxCreateV3(const Call<decltype(&::cuCtxCreate_v3)>& call, CUcontext* context, CUexecAffinityParam* affinity,
                     int affinities, unsigned int flags, CUdevice device) {
  return CreateContext(call, device, context, affinity, affinities, flags, device);
}

CUresult CtxCreateV4(const Call<decltype(&::cuCtxCreate_v4)>& call, CUcontext* context, CUctxCreateParams* parameters,
                     unsigned int flags, CUdevice device) {
  return CreateContext(call, device, context, parameters, flags, device);
}

CUresult CtxDestroy(const Call<decltype(&::cuCtxDestroy_v2)>& call, CUcontext context) {
  return CallAndSample(call, context);
}

CUresult CtxSetLimit(const Call<decltype(&::cuCtxSetLimit)>& call, CUlimit limit, size_t value) {
  return CallAndSample(call, limit, value);
}

CUresult ModuleLoad(const Call<decltype(&::cuModuleLoad)>& call, CUmodule* module, const char* path) {
  return CallAndSample(call, module, path);
}

CUresult ModuleLoadData(const Call<decltype(&::cuModuleLoadData)>& call, CUmodule* module, const void* image) {
  return CallAndSample(call, module, image);
}

CUresult ModuleLoadDataEx(const Call<decltype(&::cuModuleLoadDataEx)>& call, CUmodule* module, const void* image,
                          unsigned int count, CUjit_option* options, void** values) {
  return CallAndSample(call, module, image, count, options, values);
}

CUresult ModuleUnload(const Call<decltype(&::cuModuleUnload)>& call, CUmodule module) {
  return CallAndSample(call, module);
}

CUresult LibraryLoadData(const Call<decltype(&::cuLibraryLoadData)>& call, CUlibrary* library, const void* code,
                         CUjit_option* jit_options, void** jit_values, unsigned int jit_count, CUlibraryOption* options,
                         void** values, unsigned int count) {
  return CallAndSample(call, library, code, jit_options, jit_values, jit_count, options, values, count);
}

CUresult LibraryLoadFromFile(const Call<decltype(&::cuLibraryLoadFromFile)>& call, CUlibrary* library, const char* path,
                             CUjit_option* jit_options, void** jit_values, unsigned int jit_count,
                             CUlibraryOption* options, void** values, unsigned int count) {
  return CallAndSample(call, library, path, jit_options, jit_values, jit_count, options, values, count);
}

CUresult LibraryUnload(const Call<decltype(&::cuLibraryUnload)>& call, CUlibrary library) {
  return CallAndSample(call, library);
}

CUresult DeviceGraphMemTrim(const Call<decltype(&::cuDeviceGraphMemTrim)>& call, CUdevice device) {
  return CallAndSample(call, device);
}

CUresult StreamBeginCaptureV1(const Call<decltype(&::cuStreamBeginCapture)>& call, CUstream stream) {
  return BeginCapture(call, stream);
}

CUresult StreamBeginCapture(const Call<decltype(&::cuStreamBeginCapture_v2)>& call, CUstream stream,
                            CUstreamCaptureMode mode) {
  return BeginCapture(call, stream, mode);
}

CUresult StreamBeginCaptureToGraph(const Call<decltype(&::cuStreamBeginCaptureToGraph)>& call, CUstream stream,
                                   CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData* edges,
                                   size_t count, CUstreamCaptureMode mode) {
  return BeginCapture(call, stream, graph, dependencies, edges, count, mode);
}

CUresult StreamEndCapture(const Call<decltype(&::cuStreamEndCapture)>& call, CUstream stream, CUgraph* graph) {
  return EndCapture(call, stream, graph);
}

cudaError_t RuntimeStreamBeginCapture(const Call<decltype(&::cudaStreamBeginCapture)>& call, cudaStream_t stream,
                                      cudaStreamCaptureMode mode) {
  return BeginCapture(call, stream, mode);
}

cudaError_t RuntimeStreamBeginCaptureToGraph(const Call<decltype(&::cudaStreamBeginCaptureToGraph)>& call,
                                             cudaStream_t stream, cudaGraph_t graph,
                                             const cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
                                             size_t count, cudaStreamCaptureMode mode) {
  return BeginCapture(call, stream, graph, dependencies, edges, count, mode);
}

cudaError_t RuntimeStreamEndCapture(const Call<decltype(&::cudaStreamEndCapture)>& call, cudaStream_t stream,
                                    cudaGraph_t* graph) {
  return EndCapture(call, stream, graph);
}

}  // namespace ledger::hooks
