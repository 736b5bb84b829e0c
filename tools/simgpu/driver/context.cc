#include "tools/simgpu/driver/context.h"

#include <unordered_set>

#include "tools/simgpu/driver/memory.h"
#include "tools/simgpu/driver/stream.h"

namespace simgpu {
namespace {

constexpr std::uint32_t kContextMagic = 0x43545854;
constexpr int kStackDepth = 64;

// Trivially destructible, since threads end in any order.
struct Stack {
  Context* entries[kStackDepth];
  int depth;
};
thread_local constinit Stack stack{};

std::unordered_set<Context*>& Known() {
  static auto* known = new std::unordered_set<Context*>;
  return *known;
}

CUresult Activate(Context* context, unsigned flags) {
  SIMGPU_RETURN_IF_ERROR(ChargeDevice(*context->device, GetProfile()->Get("context.bytes")));
  context->alive = true;
  context->flags = flags;
  context->legacy_stream = NewStream(context, CU_STREAM_DEFAULT, 0);
  return CUDA_SUCCESS;
}

Context* NewContext(Device* device, bool primary) {
  static std::uint32_t last_id = 0;
  auto* context = new Context{.magic = kContextMagic, .device = device, .id = ++last_id, .primary = primary};
  Known().insert(context);
  return context;
}

CUresult Create(CUcontext* handle, unsigned flags, CUdevice ordinal) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (stack.depth == kStackDepth) return CUDA_ERROR_OUT_OF_MEMORY;
  Context* context = NewContext(device, false);
  SIMGPU_RETURN_IF_ERROR(Activate(context, flags));
  stack.entries[stack.depth++] = context;
  *handle = ToHandle(context);
  return CUDA_SUCCESS;
}

}  // namespace

Context* CurrentContext() { return stack.depth == 0 ? nullptr : stack.entries[stack.depth - 1]; }

CUresult RequireContext(Context** context) {
  SIMGPU_ENTER();
  *context = CurrentContext();
  if (*context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return (*context)->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Context* FromHandle(CUcontext handle) {
  auto* context = reinterpret_cast<Context*>(handle);
  return Known().count(context) != 0 ? context : nullptr;
}

CUresult RetainPrimary(Device* device, Context** context) {
  if (device->primary == nullptr) device->primary = NewContext(device, true);
  Context* primary = device->primary;
  if (!primary->alive) SIMGPU_RETURN_IF_ERROR(Activate(primary, primary->flags));
  ++primary->references;
  *context = primary;
  return CUDA_SUCCESS;
}

void DestroyContext(Context* context) {
  if (!context->alive) return;
  FreeMemoryOf(context);
  DestroyStreamsOf(context);
  DischargeDevice(*context->device, context->code_charged + GetProfile()->Get("context.bytes"));
  context->code_bytes = context->code_charged = 0;
  context->legacy_stream = nullptr;
  context->thread_streams.clear();
  context->references = 0;
  context->alive = false;
}

CUresult ChargeCode(Context* context, std::uint64_t bytes) {
  const std::uint64_t chunk = GetProfile()->Get("memory.granularity");
  const std::uint64_t wanted = RoundUp(context->code_bytes + bytes, chunk);
  if (wanted > context->code_charged) {
    SIMGPU_RETURN_IF_ERROR(ChargeDevice(*context->device, wanted - context->code_charged));
    context->code_charged = wanted;
  }
  context->code_bytes += bytes;
  return CUDA_SUCCESS;
}

}  // namespace simgpu

using simgpu::Context;
using simgpu::Device;
using simgpu::FindDevice;
using simgpu::FromHandle;
using simgpu::Guard;
using simgpu::stack;
using simgpu::ToHandle;

// ---- Primary contexts

SIMGPU_API cuDevicePrimaryCtxRetain(CUcontext* handle, CUdevice ordinal) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RetainPrimary(device, &context));
  *handle = ToHandle(context);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  SIMGPU_ENTER();
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary == nullptr || !device->primary->alive) return CUDA_ERROR_INVALID_CONTEXT;
  if (--device->primary->references == 0) simgpu::DestroyContext(device->primary);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxReset(CUdevice ordinal) {
  SIMGPU_ENTER();
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary != nullptr) simgpu::DestroyContext(device->primary);
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned flags) {
  SIMGPU_ENTER();
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (device->primary == nullptr) device->primary = simgpu::NewContext(device, true);
  device->primary->flags = flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  SIMGPU_ENTER();
  const Guard guard;
  Device* device = FindDevice(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (flags != nullptr) *flags = device->primary == nullptr ? 0 : device->primary->flags;
  if (active != nullptr) *active = device->primary != nullptr && device->primary->alive ? 1 : 0;
  return CUDA_SUCCESS;
}

// ---- Other contexts

SIMGPU_API cuCtxCreate(CUcontext* handle, CUctxCreateParams*, unsigned flags, CUdevice ordinal) {  // v4
  SIMGPU_ENTER();
  return simgpu::Create(handle, flags, ordinal);
}

#undef cuCtxCreate
SIMGPU_API cuCtxCreate_v3(CUcontext* handle, CUexecAffinityParam*, int, unsigned flags, CUdevice ordinal) {
  SIMGPU_ENTER();
  return simgpu::Create(handle, flags, ordinal);
}

SIMGPU_API cuCtxCreate_v2(CUcontext* handle, unsigned flags, CUdevice ordinal) {
  SIMGPU_ENTER();
  return simgpu::Create(handle, flags, ordinal);
}

SIMGPU_API cuCtxDestroy(CUcontext handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Context* context = FromHandle(handle);
  if (context == nullptr || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  simgpu::DestroyContext(context);
  if (simgpu::CurrentContext() == context) --stack.depth;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxPushCurrent(CUcontext handle) {
  SIMGPU_ENTER();
  const Guard guard;
  Context* context = FromHandle(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.depth == simgpu::kStackDepth) return CUDA_ERROR_INVALID_VALUE;
  stack.entries[stack.depth++] = context;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxPopCurrent(CUcontext* handle) {
  SIMGPU_ENTER();
  if (stack.depth == 0) return CUDA_ERROR_INVALID_CONTEXT;
  Context* context = stack.entries[--stack.depth];
  if (handle != nullptr) *handle = ToHandle(context);
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetCurrent(CUcontext handle) {
  SIMGPU_ENTER();
  if (handle == nullptr) {
    if (stack.depth > 0) --stack.depth;
    return CUDA_SUCCESS;
  }
  if (stack.depth > 0 && ToHandle(simgpu::CurrentContext()) == handle) return CUDA_SUCCESS;  // the usual case
  const Guard guard;
  Context* context = FromHandle(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.depth == 0) stack.depth = 1;
  stack.entries[stack.depth - 1] = context;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetCurrent(CUcontext* handle) {
  SIMGPU_ENTER();
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = ToHandle(simgpu::CurrentContext());
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetDevice(CUdevice* ordinal) {
  if (ordinal == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  *ordinal = context->device->ordinal;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetDevice_v2(CUdevice* ordinal, CUcontext handle) {
  if (handle == nullptr) return cuCtxGetDevice(ordinal);
  SIMGPU_ENTER();
  if (ordinal == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Context* context = FromHandle(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *ordinal = context->device->ordinal;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetFlags(unsigned* flags) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = context->flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetFlags(unsigned flags) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  context->flags = flags;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetId(CUcontext handle, unsigned long long* id) {
  SIMGPU_ENTER();
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Context* context = handle == nullptr ? simgpu::CurrentContext() : FromHandle(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  SIMGPU_ENTER();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (handle != nullptr && FromHandle(handle) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *version = 3020;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const Guard guard;
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxGetLimit(size_t* value, CUlimit limit) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const auto set = context->limits.find(limit);
  if (set != context->limits.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  switch (limit) {  // the defaults that CUDA documents
    case CU_LIMIT_STACK_SIZE:
      *value = 1024;
      return CUDA_SUCCESS;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      *value = 1 << 20;
      return CUDA_SUCCESS;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      *value = 8 << 20;
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      *value = 2;
      return CUDA_SUCCESS;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      *value = 2048;
      return CUDA_SUCCESS;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      *value = 128;
      return CUDA_SUCCESS;
    case CU_LIMIT_PERSISTING_L2_CACHE_SIZE:
    case CU_LIMIT_SHMEM_SIZE:
    case CU_LIMIT_CIG_ENABLED:
    case CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED:
      *value = 0;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_UNSUPPORTED_LIMIT;
  }
}

SIMGPU_API cuCtxResetPersistingL2Cache() {
  Context* context = nullptr;
  return simgpu::RequireContext(&context);
}

SIMGPU_API cuCtxGetCacheConfig(CUfunc_cache* config) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_FUNC_CACHE_PREFER_NONE;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetCacheConfig(CUfunc_cache) {
  Context* context = nullptr;
  return simgpu::RequireContext(&context);
}

SIMGPU_API cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSetSharedMemConfig(CUsharedconfig) {
  Context* context = nullptr;
  return simgpu::RequireContext(&context);
}

SIMGPU_API cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = simgpu::kGreatestPriority;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxSynchronize() {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  const Guard guard;
  return simgpu::SynchronizeContext(context);
}

SIMGPU_API cuCtxSynchronize_v2(CUcontext handle) {
  if (handle == nullptr) return cuCtxSynchronize();
  SIMGPU_ENTER();
  const Guard guard;
  Context* context = FromHandle(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!context->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return simgpu::SynchronizeContext(context);
}

// ---- Peers: every device reaches every other one.

SIMGPU_API cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  SIMGPU_ENTER();
  if (can == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (FindDevice(device) == nullptr || FindDevice(peer) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *can = device != peer ? 1 : 0;
  return CUDA_SUCCESS;
}

SIMGPU_API cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer) {
  SIMGPU_ENTER();
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  if (FindDevice(device) == nullptr || FindDevice(peer) == nullptr || device == peer) return CUDA_ERROR_INVALID_DEVICE;
  *value = attribute == CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ? 0 : 1;
  return CUDA_SUCCESS;
}

SIMGPU_API cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Context* context = nullptr;
  SIMGPU_RETURN_IF_ERROR(simgpu::RequireContext(&context));
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  return FromHandle(peer) == nullptr || FromHandle(peer) == context ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

SIMGPU_API cuCtxDisablePeerAccess(CUcontext peer) {
  SIMGPU_ENTER();
  const Guard guard;
  return FromHandle(peer) == nullptr ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
