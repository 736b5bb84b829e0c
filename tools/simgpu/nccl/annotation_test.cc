// What a tool that attaches to NVTX is told by the library. The expected texts were compared with what the genuine
// library 2.28.9 tells the same tool for the same calls, as far as it goes without a GPU.
#include <dlfcn.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tools/simgpu/nccl/test_ranks.h"

namespace simgpu::nccl {
namespace {

// Runs `calls` in a process of its own under the tool, and returns what that was told.
std::string Told(const std::function<void()>& calls, std::initializer_list<const char*> environment = {}) {
  int channel[2];
  REQUIRE(pipe(channel) == 0);
  const auto body = [&](int) {
    setenv("NVTX_INJECTION64_PATH", ANNOTATION_TOOL, 1);
    for (const char* name : environment) setenv(name, "1", 1);
    calls();
    void* tool = dlopen(ANNOTATION_TOOL, RTLD_NOW);
    RANK_CHECK(tool != nullptr);
    const auto log = reinterpret_cast<const char* (*)()>(dlsym(tool, "annotation_tool_log"));
    RANK_CHECK(log != nullptr);
    const std::size_t size = std::strlen(log());
    return write(channel[1], log(), size) == static_cast<ssize_t>(size) ? 0 : 1;
  };
  CHECK(RunRanks(1, body) == AllZero(1));
  close(channel[1]);
  std::string told;
  char piece[4096];
  for (ssize_t size; (size = read(channel[0], piece, sizeof piece)) > 0;)
    told.append(piece, static_cast<std::size_t>(size));
  close(channel[0]);
  return told;
}

// Annotations come before arguments are checked, so no communicator is needed, nor a device.
void CallWithoutCommunicator() {
  float data[8] = {};
  const std::size_t count = 1000;
  ncclGroupStart();
  ncclAllGather(data, data, count, ncclFloat32, nullptr, nullptr);
  ncclAllReduce(data, data, 4, ncclFloat32, ncclMax, nullptr, nullptr);
  ncclBroadcast(data, data, 4, ncclBfloat16, 3, nullptr, nullptr);
  ncclBcast(data, 4, ncclInt8, 2, nullptr, nullptr);
  ncclReduce(data, data, 4, ncclFloat64, ncclAvg, 1, nullptr, nullptr);
  ncclReduceScatter(data, data, 4, ncclFloat16, ncclSum, nullptr, nullptr);
  ncclAlltoAll(data, data, 4, ncclInt64, nullptr, nullptr);
  ncclGather(data, data, 4, ncclInt64, 5, nullptr, nullptr);
  ncclScatter(data, data, 4, ncclInt64, 6, nullptr, nullptr);
  ncclSend(data, 4, ncclFloat32, 7, nullptr, nullptr);
  ncclRecv(data, 4, ncclFloat32, 8, nullptr, nullptr);
  ncclGroupEnd();
}

TEST_CASE("operations are ranges with their figures as payload") {
  CHECK(Told(CallWithoutCommunicator) ==
        "domain NCCL\n"
        "NCCL: push ncclGroupStart\nNCCL: pop\n"
        "NCCL: push ncclAllGather schema 4, 16 bytes: 0 0 fa0 0\nNCCL: pop\n"
        "NCCL: push ncclAllReduce schema 5, 24 bytes: 0 0 10 0 2 0\nNCCL: pop\n"
        "NCCL: push ncclBroadcast schema 6, 24 bytes: 0 0 8 0 3 0\nNCCL: pop\n"
        "NCCL: push ncclBroadcast schema 6, 24 bytes: 0 0 4 0 2 0\nNCCL: pop\n"
        "NCCL: push ncclReduce schema 8, 24 bytes: 0 0 20 0 1 4\nNCCL: pop\n"
        "NCCL: push ncclReduceScatter schema 7, 24 bytes: 0 0 8 0 0 0\nNCCL: pop\n"
        "NCCL: push ncclAlltoAll schema 16, 16 bytes: 0 0 20 0\nNCCL: pop\n"
        "NCCL: push ncclGather schema 17, 24 bytes: 0 0 20 0 5 0\nNCCL: pop\n"
        "NCCL: push ncclScatter schema 18, 24 bytes: 0 0 20 0 6 0\nNCCL: pop\n"
        "NCCL: push ncclSend schema 9, 24 bytes: 0 0 10 0 7 0\nNCCL: pop\n"
        "NCCL: push ncclRecv schema 10, 24 bytes: 0 0 10 0 8 0\nNCCL: pop\n"
        "NCCL: push ncclGroupEnd\nNCCL: pop\n");
}

TEST_CASE("NCCL_NVTX_DISABLE turns annotations off") {
  CHECK(Told(CallWithoutCommunicator, {"NCCL_NVTX_DISABLE"}).find("push") == std::string::npos);
}

void MakeAndDestroy() {
  const ncclComm_t comm = Join(1, MakeId(), 0);
  RANK_CHECK(ncclCommDestroy(comm) == ncclSuccess);
}

TEST_CASE("ranges of communicators end in the payload extension, where a tool of the core API doesn't see it") {
  CHECK(Told(MakeAndDestroy) == "domain NCCL\nNCCL: push ncclCommInitRank\nNCCL: push ncclCommDestroy\n");

  const std::string told = Told(MakeAndDestroy, {"ANNOTATION_TOOL_EXTENSION"});
  INFO(told);
  CHECK(told.starts_with("domain NCCL\nNCCL: push ncclCommInitRank\nNCCL: pop schema 0, 24 bytes: "));
  CHECK(told.find("\nNCCL: push ncclCommDestroy\nNCCL: pop schema 2, 24 bytes: ") != std::string::npos);
  CHECK(told.ends_with(" 1 0 0 0\n"));  // one rank, rank 0, device 0, padding
}

}  // namespace
}  // namespace simgpu::nccl
