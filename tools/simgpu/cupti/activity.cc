// CUPTI's activity interface.
#include "tools/simgpu/cupti/api.h"
#include "tools/simgpu/cupti/buffers.h"
#include "tools/simgpu/cupti/collector.h"

using simgpu::cupti::Buffers;
using simgpu::cupti::Collector;
using simgpu::cupti::kRecordStride;

extern "C" {

CUptiResult cuptiGetVersion(uint32_t* version) {
  if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = Collector::Get().Now();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                           CUpti_BuffersCallbackCompleteFunc complete) {
  if (request == nullptr || complete == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Buffers::Get().SetCallbacks(request, complete);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc clock) {
  if (clock == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  Collector::Get().SetClock(clock);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) { return Collector::Get().Enable(kind); }

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) { return Collector::Get().Disable(kind); }

CUptiResult cuptiActivityEnableContext(CUcontext, CUpti_ActivityKind kind) { return Collector::Get().Enable(kind); }

CUptiResult cuptiActivityDisableContext(CUcontext, CUpti_ActivityKind kind) { return Collector::Get().Disable(kind); }

// Calls aren't recorded by function, so there is nothing to select among them.
CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId, uint8_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId, uint8_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityEnableLatencyTimestamps(uint8_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t) { return CUPTI_SUCCESS; }

// The buffers of the device that the attributes size don't exist here.
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t* size, void* value) {
  return size == nullptr || value == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  Buffers::Get().Flush();
  return CUPTI_SUCCESS;
}

// Records are complete when they are made, and buffers go back when they are full.
CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }

CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid_bytes, CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* next = *record == nullptr ? buffer : reinterpret_cast<uint8_t*>(*record) + kRecordStride;
  if (next + kRecordStride > buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id) {
  return Collector::Get().PushExternalId(kind, id);
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t* id) {
  return Collector::Get().PopExternalId(kind, id);
}

CUptiResult cuptiFinalize() {
  Collector::Get().DisableAll();
  Buffers::Get().Flush();
  return CUPTI_SUCCESS;
}

}  // extern "C"
