#include <dlfcn.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tools/simgpu/driver/export_table.h"
#include "tools/simgpu/driver/test_context.h"

namespace simgpu {
namespace {

void* Exported(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  return dlsym(library, name);
}

void* Ask(const char* name, int version, cuuint64_t flags = 0) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status;
  REQUIRE_OK(cuGetProcAddress(name, &function, version, flags, &status));
  return function;
}

CUdriverProcAddressQueryResult StatusOf(const char* name, int version) {
  void* function = &function;
  CUdriverProcAddressQueryResult status;
  REQUIRE_OK(cuGetProcAddress(name, &function, version, 0, &status));
  if (status != CU_GET_PROC_ADDRESS_SUCCESS) REQUIRE(function == nullptr);
  return status;
}

TEST_CASE("A name and a version give one form of an entry point") {
  REQUIRE(Ask("cuMemAlloc", 2000) == Exported("cuMemAlloc"));
  REQUIRE(Ask("cuMemAlloc", 3020) == Exported("cuMemAlloc_v2"));
  REQUIRE(Ask("cuMemAlloc", 13000) == Exported("cuMemAlloc_v2"));
  REQUIRE(Ask("cuCtxCreate", 3020) == Exported("cuCtxCreate_v2"));
  REQUIRE(Ask("cuCtxCreate", 11040) == Exported("cuCtxCreate_v3"));
  REQUIRE(Ask("cuCtxCreate", 12050) == Exported("cuCtxCreate_v4"));
  REQUIRE(Ask("cuIpcOpenMemHandle", 4010) == Exported("cuIpcOpenMemHandle"));
  REQUIRE(Ask("cuIpcOpenMemHandle", 11000) == Exported("cuIpcOpenMemHandle_v2"));
  REQUIRE(Ask("cuStreamGetCaptureInfo", 10010) == Exported("cuStreamGetCaptureInfo"));
  REQUIRE(Ask("cuStreamGetCaptureInfo", 12000) == Exported("cuStreamGetCaptureInfo_v2"));
  REQUIRE(Ask("cuStreamGetCaptureInfo", 12030) == Exported("cuStreamGetCaptureInfo_v3"));
  REQUIRE(Ask("cuGetProcAddress", 11030) == Exported("cuGetProcAddress"));
  REQUIRE(Ask("cuGetProcAddress", 12000) == Exported("cuGetProcAddress_v2"));
  REQUIRE(Ask("cuCtxGetDevice", 13000) == Exported("cuCtxGetDevice_v2"));
}

TEST_CASE("Per-thread flags give per-thread twins, where there are any") {
  constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  REQUIRE(Ask("cuMemcpyHtoD", 7000, kPerThread) == Exported("cuMemcpyHtoD_v2_ptds"));
  REQUIRE(Ask("cuMemcpyHtoDAsync", 7000, kPerThread) == Exported("cuMemcpyHtoDAsync_v2_ptsz"));
  REQUIRE(Ask("cuLaunchKernel", 7000, kPerThread) == Exported("cuLaunchKernel_ptsz"));
  REQUIRE(Ask("cuMemAllocAsync", 11020, kPerThread) == Exported("cuMemAllocAsync_ptsz"));
  REQUIRE(Ask("cuMemAlloc", 7000, kPerThread) == Exported("cuMemAlloc_v2"));
  REQUIRE(Ask("cuMemcpyHtoDAsync", 7000) == Exported("cuMemcpyHtoDAsync_v2"));
  void* function = nullptr;
  REQUIRE(cuGetProcAddress("cuMemAlloc", &function, 12000, 3, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("What is not there is told apart from what is too new") {
  REQUIRE(StatusOf("cuMemAlloc", 3020) == CU_GET_PROC_ADDRESS_SUCCESS);
  REQUIRE(StatusOf("cuMemAlloc", 1000) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  REQUIRE(StatusOf("cuMemCreate", 9000) == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  REQUIRE(StatusOf("cuMemAlloc_v2", 12000) == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  REQUIRE(StatusOf("", 0) == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  void* function = &function;
  REQUIRE(cuGetProcAddress("cuNothing", &function, 12000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
  REQUIRE(function == nullptr);
}

TEST_CASE("The null stream of a per-thread twin is the thread's own") {
  const TestContext context;
  auto* get_id = reinterpret_cast<CUresult (*)(CUstream, unsigned long long*)>(
      Ask("cuStreamGetId", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  unsigned long long twin = 0, own = 1, legacy = 0;
  REQUIRE_OK(get_id(nullptr, &twin));
  REQUIRE_OK(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
  REQUIRE_OK(cuStreamGetId(nullptr, &legacy));
  REQUIRE(twin == own);
  REQUIRE(twin != legacy);
}

TEST_CASE("Every function of the headers is exported") {
  std::ifstream list(SIMGPU_SYMBOL_LIST);
  int count = 0;
  for (std::string name; std::getline(list, name); ++count) {
    INFO(name);
    REQUIRE(Exported(name.c_str()) != nullptr);
  }
  REQUIRE(count > 600);
}

TEST_CASE("Unimplemented functions say that they are") {
  auto* create = reinterpret_cast<CUresult (*)(void*, void*)>(Exported("cuMulticastCreate"));
  REQUIRE(create(nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("Errors have names and texts") {
  const char* text = nullptr;
  REQUIRE_OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
  REQUIRE(std::string(text) == "CUDA_ERROR_OUT_OF_MEMORY");
  REQUIRE_OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  REQUIRE(std::string(text) == "out of memory");
  REQUIRE_OK(cuGetErrorName(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, &text));
  REQUIRE(std::string(text) == "CUDA_ERROR_STREAM_CAPTURE_UNJOINED");
  REQUIRE(cuGetErrorName(static_cast<CUresult>(990), &text) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(text == nullptr);
}

TEST_CASE("There is one export table, with the profile's figures and the options") {
  const void* found = nullptr;
  const CUuuid other = {};
  REQUIRE(cuGetExportTable(&found, &other) == CUDA_ERROR_NOT_FOUND);
  REQUIRE_OK(cuGetExportTable(&found, &kExportTableId));
  const auto* table = static_cast<const ExportTable*>(found);
  REQUIRE(table->size == sizeof(ExportTable));
  std::uint64_t value = 0;
  REQUIRE_OK(table->number("multiprocessors", &value));
  REQUIRE(value == 132);
  REQUIRE_OK(table->number("option.copy_max", &value));
  REQUIRE(value == 1 << 20);
  REQUIRE(table->number("name", &value) == CUDA_ERROR_NOT_FOUND);
  const char* name = nullptr;
  REQUIRE_OK(table->text("name", &name));
  REQUIRE(std::string(name) == "NVIDIA H100 80GB HBM3");
}

}  // namespace
}  // namespace simgpu
