#include <cstring>

#include "tools/simgpu/runtime/api.h"
#include "tools/simgpu/runtime/forward.h"

namespace simgpu::runtime {
namespace {

// Reads attributes of one device into properties of any integer type.
class AttributeReader {
 public:
  explicit AttributeReader(CUdevice device) : device_(device) {}

  template <class T>
  void Read(CUdevice_attribute attribute, T* property) {
    int value = 0;
    if (GetDriver().cuDeviceGetAttribute(&value, attribute, device_) == CUDA_SUCCESS) {
      *property = static_cast<T>(value);
    }
  }

 private:
  const CUdevice device_;
};

void ReadIdentity(CUdevice device, cudaDeviceProp* prop) {
  const Driver& driver = GetDriver();
  driver.cuDeviceGetName(prop->name, sizeof(prop->name), device);
  CUuuid uuid = {};
  if (driver.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS) {
    static_assert(sizeof(uuid) == sizeof(prop->uuid));
    std::memcpy(&prop->uuid, &uuid, sizeof(uuid));
  }
  driver.cuDeviceTotalMem(&prop->totalGlobalMem, device);
  AttributeReader reader(device);
  reader.Read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &prop->major);
  reader.Read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &prop->minor);
  reader.Read(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &prop->pciBusID);
  reader.Read(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &prop->pciDeviceID);
  reader.Read(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &prop->pciDomainID);
  reader.Read(CU_DEVICE_ATTRIBUTE_TCC_DRIVER, &prop->tccDriver);
  reader.Read(CU_DEVICE_ATTRIBUTE_INTEGRATED, &prop->integrated);
  reader.Read(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD, &prop->isMultiGpuBoard);
  reader.Read(CU_DEVICE_ATTRIBUTE_MULTI_GPU_BOARD_GROUP_ID, &prop->multiGpuBoardGroupID);
  reader.Read(CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID, &prop->gpuPciDeviceID);
  reader.Read(CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID, &prop->gpuPciSubsystemID);
}

void ReadExecutionLimits(CUdevice device, cudaDeviceProp* prop) {
  AttributeReader reader(device);
  reader.Read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &prop->multiProcessorCount);
  reader.Read(CU_DEVICE_ATTRIBUTE_WARP_SIZE, &prop->warpSize);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &prop->maxThreadsPerBlock);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &prop->maxThreadsDim[0]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &prop->maxThreadsDim[1]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &prop->maxThreadsDim[2]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &prop->maxGridSize[0]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &prop->maxGridSize[1]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &prop->maxGridSize[2]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &prop->regsPerBlock);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &prop->regsPerMultiprocessor);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &prop->maxThreadsPerMultiProcessor);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &prop->maxBlocksPerMultiProcessor);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &prop->sharedMemPerBlock);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &prop->sharedMemPerBlockOptin);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &prop->sharedMemPerMultiprocessor);
  reader.Read(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &prop->reservedSharedMemPerBlock);
  reader.Read(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, &prop->concurrentKernels);
  reader.Read(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &prop->asyncEngineCount);
  reader.Read(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &prop->cooperativeLaunch);
  reader.Read(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, &prop->clusterLaunch);
  reader.Read(CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, &prop->computePreemptionSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, &prop->streamPrioritiesSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, &prop->unifiedFunctionPointers);
  reader.Read(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, &prop->mpsEnabled);
}

void ReadMemory(CUdevice device, cudaDeviceProp* prop) {
  AttributeReader reader(device);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_PITCH, &prop->memPitch);
  reader.Read(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, &prop->totalConstMem);
  reader.Read(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &prop->memoryBusWidth);
  reader.Read(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &prop->l2CacheSize);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, &prop->persistingL2CacheMaxSize);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, &prop->accessPolicyMaxWindowSize);
  reader.Read(CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, &prop->globalL1CacheSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, &prop->localL1CacheSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_ECC_ENABLED, &prop->ECCEnabled);
  reader.Read(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, &prop->unifiedAddressing);
  reader.Read(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, &prop->managedMemory);
  reader.Read(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &prop->concurrentManagedAccess);
  reader.Read(CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, &prop->directManagedMemAccessFromHost);
  reader.Read(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &prop->pageableMemoryAccess);
  reader.Read(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
              &prop->pageableMemoryAccessUsesHostPageTables);
  reader.Read(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, &prop->hostNativeAtomicSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, &prop->canMapHostMemory);
  reader.Read(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, &prop->canUseHostPointerForRegisteredMem);
  reader.Read(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &prop->hostRegisterSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, &prop->hostRegisterReadOnlySupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &prop->memoryPoolsSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, &prop->memoryPoolSupportedHandleTypes);
  reader.Read(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, &prop->gpuDirectRDMASupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS, &prop->gpuDirectRDMAFlushWritesOptions);
  reader.Read(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING, &prop->gpuDirectRDMAWritesOrdering);
  reader.Read(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED, &prop->timelineSemaphoreInteropSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, &prop->ipcEventSupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, &prop->deviceNumaConfig);
  reader.Read(CU_DEVICE_ATTRIBUTE_NUMA_ID, &prop->deviceNumaId);
  reader.Read(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, &prop->hostNumaId);
  reader.Read(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, &prop->hostNumaMultinodeIpcSupported);
}

void ReadTextures(CUdevice device, cudaDeviceProp* prop) {
  AttributeReader reader(device);
  reader.Read(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, &prop->textureAlignment);
  reader.Read(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, &prop->texturePitchAlignment);
  reader.Read(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, &prop->surfaceAlignment);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, &prop->maxTexture1D);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, &prop->maxTexture1DMipmap);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, &prop->maxTexture2D[0]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, &prop->maxTexture2D[1]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, &prop->maxTexture2DLinear[0]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, &prop->maxTexture2DLinear[1]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, &prop->maxTexture2DLinear[2]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, &prop->maxTexture3D[0]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, &prop->maxTexture3D[1]);
  reader.Read(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, &prop->maxTexture3D[2]);
  reader.Read(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &prop->sparseCudaArraySupported);
  reader.Read(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &prop->deferredMappingCudaArraySupported);
}

}  // namespace
}  // namespace simgpu::runtime

extern "C" cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  using namespace simgpu::runtime;
  if (prop == nullptr) return Record(cudaErrorInvalidValue);
  *prop = {};
  const Driver& driver = GetDriver();
  if (driver.status != cudaSuccess) return Record(driver.status);
  CUdevice handle = 0;
  const CUresult found = driver.cuDeviceGet(&handle, device);
  if (found != CUDA_SUCCESS) return Record(found);
  ReadIdentity(handle, prop);
  ReadExecutionLimits(handle, prop);
  ReadMemory(handle, prop);
  ReadTextures(handle, prop);
  return cudaSuccess;
}
