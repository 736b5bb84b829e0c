// An application that uses NVTX from several libraries. The first argument names the scenario; the exit status is 0
// when what NVTX returned to the application was right.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

#include "tests/programs/annotations/block_event.h"
#include "tests/programs/annotations/nvtx_client.h"

namespace {

int g_failures = 0;

void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++g_failures;
}
#define EXPECT(condition) Expect(condition, #condition)

const NvtxClient* Local(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  return reinterpret_cast<const NvtxClient* (*)()>(dlsym(library, "LocalNvtxClient"))();
}

// One block inside a range of each library, on two threads; the early one has pushed a range before main.
void Sources(const NvtxClient& local) {
  EarlyNvtxClient();
  LinkedNvtxClient()->push("linked");
  ReportBlock(0x1000);
  local.push("local");
  ReportBlock(0x2000);
  local.pop();
  LinkedNvtxClient()->pop();
  std::thread([&local] {
    local.push("thread");
    ReportBlock(0x3000);
    local.pop();
  }).join();
  EXPECT(EarlyNvtxClient()->pop() == 0);
  ReportBlock(0x4000);
}

void Domains(const NvtxClient& local) {
  const NvtxClient& linked = *LinkedNvtxClient();
  ReportBlock(0x1000);
  void* const domain = linked.domain("io");
  void* const same = local.domain("io");
  void* const other = linked.domain_wide(L"d\u00e9p\u00f4t");
  EXPECT(domain != nullptr && domain == same && other != nullptr && other != domain);
  void* const load = linked.register_string(domain, "load");
  void* const wide = local.register_wide_string(same, L"\u4fdd\u5b58");

  EXPECT(linked.push("outer") == 0);
  EXPECT(linked.domain_push(domain, load, 41.6) == 0);
  EXPECT(local.domain_push(same, wide, -2.4) == 1);
  EXPECT(linked.domain_push_text(other, "text", 7) == 0);
  ReportBlock(0x2000);
  // The ranges of one domain end without regard to those of another that are open inside them.
  EXPECT(local.domain_pop(same) == 1);
  EXPECT(linked.domain_pop(domain) == 0);
  ReportBlock(0x3000);
  EXPECT(linked.domain_pop(other) == 0);
  EXPECT(linked.push_wide(L"\U0001F600") == 1);
  ReportBlock(0x4000);
  EXPECT(linked.pop() == 1);
  EXPECT(linked.pop() == 0);
  linked.domain_destroy(domain);
  ReportBlock(0x5000);
}

void Unbalanced() {
  const NvtxClient& linked = *LinkedNvtxClient();
  ReportBlock(0x1000);
  void* const domain = linked.domain("io");
  EXPECT(linked.pop() < 0);
  EXPECT(linked.domain_pop(domain) < 0);
  linked.push("still fine");
  EXPECT(linked.domain_pop(domain) < 0);
  ReportBlock(0x2000);
  EXPECT(linked.pop() == 0);
}

void Deep() {
  const NvtxClient& linked = *LinkedNvtxClient();
  ReportBlock(0x1000);
  constexpr int kDepth = 5000;
  int wrong = 0;
  for (int i = 0; i < kDepth; ++i) wrong += linked.push("deeper") != i;
  for (int i = kDepth; i > 0; --i) wrong += linked.pop() != i - 1;
  EXPECT(wrong == 0);
  linked.push("flat again");
  ReportBlock(0x2000);
  linked.pop();
}

void StartEnd(const NvtxClient& local) {
  const NvtxClient& linked = *LinkedNvtxClient();
  ReportBlock(0x1000);
  void* const domain = linked.domain("io");
  std::uint64_t ids[4] = {linked.start("one"), local.start("two"), linked.domain_start(domain, "three"), 0};
  std::thread([&] { ids[3] = local.start("four"); }).join();
  for (int i = 0; i < 4; ++i) {
    EXPECT(ids[i] != 0);
    for (int j = 0; j < i; ++j) EXPECT(ids[i] != ids[j]);
  }
  std::thread([&] { linked.end(ids[0]); }).join();
  local.end(ids[1]);
  linked.domain_end(domain, ids[2]);
  local.end(ids[3]);
  linked.push("here");
  linked.mark("instant");
  linked.domain_mark(domain, "numbered", 99);
  linked.pop();
}

void Nccl() {
  const NvtxClient& linked = *LinkedNvtxClient();
  ReportBlock(0x1000);
  void* const domain = linked.domain("NCCL");
  void* const all_reduce = linked.register_string(domain, "ncclAllReduce");
  void* const init = linked.register_string(domain, "ncclCommInitRank");
  void* const unknown = linked.register_string(domain, "ncclSomethingNew");
  linked.nccl_push(domain, all_reduce, 5, 4096);
  linked.domain_pop(domain);
  linked.nccl_push(domain, init, 0, 0);
  linked.domain_pop(domain);
  linked.nccl_push(domain, unknown, 99, 4096);
  linked.domain_pop(domain);
}

// As PyTorch's emit_nvtx names its ranges.
void Ops() {
  const NvtxClient& linked = *LinkedNvtxClient();
  ReportBlock(0x1000);
  linked.push("aten::mul, seq = 12, op_id = 345");
  linked.push("aten::mul, op_id = 346, sizes = [[2, 3], []]");
  linked.push("one, two");
  ReportBlock(0x2000);
  for (int i = 0; i < 3; ++i) linked.pop();
}

// What another tool sees must be the same with us and without us.
void WithTool(const NvtxClient& local) {
  const NvtxClient& linked = *LinkedNvtxClient();
  std::printf("push %d\n", linked.push("a"));
  void* const domain = linked.domain("tooled");
  void* const string = linked.register_string(domain, "registered");
  void* const wide = linked.register_wide_string(domain, L"not the tool's");
  linked.domain_push(domain, string, 1);
  linked.domain_push(domain, wide, 1);
  ReportBlock(0x1000);
  linked.domain_pop(domain);
  linked.domain_pop(domain);
  const std::uint64_t id = local.start("process-wide");
  std::printf("id %d\n", id == 77);
  local.end(id);
  local.end(linked.domain_start(domain, "ours alone"));
  linked.name_thread(1, "thread's name");
  linked.pop();
  ReportBlock(0x2000);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: nvtx_program SCENARIO LOCAL_CLIENT\n");
    return 2;
  }
  const NvtxClient* const local = Local(arguments[2]);
  if (local == nullptr) return 2;
  const std::string scenario = arguments[1];
  if (scenario != "sources" && scenario != "tool") EarlyNvtxClient()->pop();  // its range from before main
  if (scenario == "sources") Sources(*local);
  if (scenario == "domains") Domains(*local);
  if (scenario == "unbalanced") Unbalanced();
  if (scenario == "deep") Deep();
  if (scenario == "start-end") StartEnd(*local);
  if (scenario == "nccl") Nccl();
  if (scenario == "ops") Ops();
  if (scenario == "tool") WithTool(*local);
  return g_failures == 0 ? 0 : 1;
}
