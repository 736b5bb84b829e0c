// A library that uses NCCL, as libtorch_cuda does; the program opens it with a scope of its own.
#include <cstdio>
#include <cstring>

#include "tests/programs/annotations/block_event.h"
#include "tests/programs/annotations/nccl.h"

namespace {

int g_failures = 0;
void Expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  ++g_failures;
}
#define EXPECT(condition) Expect(condition, #condition)

struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 22809;
  int numbers[4] = {};
  const char* net_name = nullptr;
  int more_numbers[2] = {};
  const char* communicator_name = "data parallel";
};

void* At(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

extern "C" [[gnu::visibility("default")]] int RunNcclClient() {
  ReportBlock(0x1000);
  ncclUniqueId id = {};
  std::strcpy(id.internal, "an id");
  ncclComm* world = nullptr;
  Config config;
  EXPECT(ncclCommInitRankConfig(&world, 8, id, 2, &config) == 0);
  ncclComm* untouched = reinterpret_cast<ncclComm*>(1);
  EXPECT(ncclCommInitRank(&untouched, 0, id, 0) != 0 && untouched == reinterpret_cast<ncclComm*>(1));

  void* const stream = At(0x77);
  EXPECT(ncclAllReduce(At(0x2000), At(0x3000), 10, 7, 0, world, stream) == 0);
  EXPECT(ncclAllGather(At(0x2000), At(0x4000), 11, 9, world, stream) == 0);
  EXPECT(ncclReduceScatter(At(0x5000), At(0x2000), 12, 6, 0, world, stream) == 0);
  EXPECT(ncclReduce(At(0x2000), nullptr, 13, 8, 0, 3, world, stream) == 0);
  EXPECT(ncclBcast(At(0x6000), 14, 1, 4, world, stream) == 0);
  EXPECT(ncclBroadcast(At(0x6000), At(0x7000), 15, 4, 99, world, stream) != 0);
  EXPECT(ncclGroupStart() == 0);
  EXPECT(ncclSend(At(0x8000), 16, 0, 5, world, stream) == 0);
  EXPECT(ncclRecv(At(0x9000), 17, 0, 6, world, stream) == 0);
  EXPECT(ncclGroupEnd() == 0);
  EXPECT(world->operations == 8);

  // A group whose end is only estimated is over all the same.
  EXPECT(ncclGroupStart() == 0);
  EXPECT(ncclGroupSimulateEnd(nullptr) == 0);

  // Two communicators in one group: they are ready only at its end.
  ncclComm* halves[2] = {};
  EXPECT(ncclGroupStart() == 0);
  EXPECT(ncclCommSplit(world, 0, 1, &halves[0], nullptr) == 0);
  EXPECT(ncclCommSplit(world, -1, 1, &halves[1], nullptr) == 0 && halves[1] == nullptr);
  EXPECT(ncclGroupEnd() == 0);
  EXPECT(FakeNcclQueriesTooEarly() == 0);

  ncclComm* all[2] = {};
  const int devices[2] = {5, 6};
  EXPECT(ncclCommInitAll(all, 2, devices) == 0);

  void* memory = nullptr;
  EXPECT(ncclMemAlloc(&memory, 4096) == 0 && memory == At(0xA000));
  EXPECT(ncclMemFree(memory) == 0);

  EXPECT(ncclCommDestroy(halves[0]) == 0);
  EXPECT(ncclCommAbort(all[1]) == 0);
  // Compiled against a newer NCCL than the one that runs.
  if (ncclAlltoAll != nullptr) EXPECT(ncclAlltoAll(At(1), At(2), 3, 7, world, stream) == 5);
  return g_failures;
}
