// What the simulated driver offers beyond the public API, to the other stand-ins and to anyone who wants to know
// whether a device is simulated. It is reached the way the genuine libraries reach their private tables:
//
//     const void* table = nullptr;
//     if (cuGetExportTable(&table, &simgpu::kExportTableId) == CUDA_SUCCESS) {
//       const auto* simulated = static_cast<const simgpu::ExportTable*>(table);   // the device is simulated
//       ...
//
// with cuGetExportTable from cuGetProcAddress. No other table exists. Works before cuInit.
//
// What the other stand-ins can rely on, in the driver's public API:
//  - Every entry point of cuda.h is there, by dlsym and by cuGetProcAddress(_v2). cuGetProcAddress answers by (name,
//    version, flags) as the genuine one: "cuMemAlloc" at >= 3020 is cuMemAlloc_v2, "cuGetProcAddress" at 11030 is the
//    four-argument one and at >= 12000 the five-argument one, flags 2 gives `_ptsz`/`_ptds` variants where there are
//    any.
//  - Any image is accepted by cuModuleLoadData*/cuLibraryLoadData*: it is only measured, never read as code. Any kernel
//    name is found in it. A stand-in that wants its kernels seen (streams, events, capture, activity) loads an image of
//    its own (any non-null pointer to at least 16 bytes), gets kernels by name and launches them with cuLaunchKernel.
//  - Launched kernels do nothing, and arguments are not read. Copies and memsets up to SIMGPU_COPY_MAX really happen,
//  at
//    the time of the call; memory read by the host through a device pointer is what was last written there so.
//  - Device pointers are valid host addresses of this process: a stand-in that has to move small values (a scalar
//    all-reduce) reads and writes them directly. Large ranges must not be touched: they have no pages.
//  - A host function (cuLaunchHostFunc, cuStreamAddCallback) runs inside the call, on the calling thread, with no lock
//    held; in a capture it runs at each cuGraphLaunch instead.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace simgpu {

// Spells "simgpu: driver 1" in ASCII.
inline constexpr CUuuid kExportTableId = {
    {'s', 'i', 'm', 'g', 'p', 'u', ':', ' ', 'd', 'r', 'i', 'v', 'e', 'r', ' ', '1'}};

enum class ActivityKind : std::uint32_t { kKernel = 0, kMemcpy = 1, kMemset = 2 };

// One operation that was given to a stream. Times are CLOCK_REALTIME nanoseconds, as CUPTI's are; they say when the
// host issued it, since nothing runs. All pointers are valid during the callback only.
struct Activity {
  std::size_t size;  // sizeof(Activity) of the driver; fields are only ever added
  ActivityKind kind;
  std::uint32_t correlation;  // of the call: the same for all nodes of one cuGraphLaunch
  const char* name;           // kernel: its (mangled) name
  int device;                 // ordinal in this process
  std::uint32_t context_id;
  std::uint32_t stream_id;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t shared_bytes;  // dynamic
  std::uint64_t bytes;         // memcpy, memset
  std::uint32_t copy_kind;  // memcpy: 1 host to device, 2 device to host, 8 device to device (CUpti_ActivityMemcpyKind)
  std::uint64_t start_ns;
  std::uint64_t end_ns;
  std::uint64_t graph_node;  // 0: not out of a graph
};

// Runs on the thread that issued the operation, with no lock of the driver held; may call the driver, except to launch.
using ActivityCallback = void (*)(void* user, const Activity* activity);

// A device of the node, whether this process sees it or not.
struct NodeDevice {
  std::size_t size;  // sizeof(NodeDevice) of the caller
  CUuuid uuid;
  char pci_bus_id[20];           // "0000:10:00.0"
  std::uint64_t total_bytes;     // as cuMemGetInfo says
  std::uint64_t reserved_bytes;  // of these, the driver's own
  std::uint64_t used_bytes;      // by processes
};

struct NodeProcess {
  std::uint32_t pid;
  std::uint64_t used_bytes;
};

struct ExportTable {
  std::size_t size;  // sizeof(ExportTable) of the driver; functions are only ever added

  // A number of the profile ("nccl.channels"; see profiles/) or of the options ("option.copy_max", "option.timeout_s",
  // "option.verbose", "option.event_lag", "option.devices"). CUDA_ERROR_NOT_FOUND: no such key, or not a number.
  CUresult (*number)(const char* key, std::uint64_t* value);

  // A text of the profile ("name"). The text lives as long as the process. CUDA_ERROR_NOT_FOUND: no such key.
  CUresult (*text)(const char* key, const char** value);

  // One subscriber at a time: CUDA_ERROR_ALREADY_MAPPED when there is one. A null callback unsubscribes.
  CUresult (*subscribe_activity)(ActivityCallback callback, void* user);

  // Kernels launched by this process so far.
  std::uint64_t (*launches)();

  // Says how large a global variable of a loaded image is, since the image isn't read: cuLibraryGetGlobal and
  // cuModuleGetGlobal then give that many bytes (64 KiB for names that were never declared). `image` is the pointer
  // that was given to the load call.
  CUresult (*declare_global)(const void* image, const char* name, std::size_t bytes);

  // The node's devices (SIMGPU_DEVICES, by physical index) and their processes, for NVML. `count` is the room in
  // `processes`, and then how many there are: CUDA_ERROR_INVALID_VALUE where the room was too small.
  int (*node_devices)();
  CUresult (*node_device)(int physical, NodeDevice* device);
  CUresult (*node_processes)(int physical, NodeProcess* processes, std::size_t* count);
};

}  // namespace simgpu
