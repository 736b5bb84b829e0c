// A small NCCL without communication: it keeps to NCCL's ABI, and to those of its habits that matter to a hook.
// Its functions call one another through the linker's table, and it knows neither ncclAlltoAll nor ncclCommShrink.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>

#include "tests/programs/annotations/block_event.h"
#include "tests/programs/annotations/nccl.h"

namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidArgument = 4;
int g_group_depth = 0;
int g_queries_too_early = 0;

ncclComm* Make(int ranks, int rank, int device) { return new ncclComm{ranks, rank, device, g_group_depth == 0, 0}; }

}  // namespace

extern "C" {

int ncclGroupStart() {
  ++g_group_depth;
  return kSuccess;
}

int ncclGroupEnd() {
  --g_group_depth;
  return kSuccess;
}

int ncclGroupSimulateEnd(void*) {
  --g_group_depth;
  return kSuccess;
}

int ncclCommInitRank(ncclComm** made, int ranks, ncclUniqueId, int rank) {
  if (ranks < 1) return kInvalidArgument;
  *made = Make(ranks, rank, 3);
  return kSuccess;
}

int ncclCommInitRankConfig(ncclComm** made, int ranks, ncclUniqueId id, int rank, void*) {
  return ncclCommInitRank(made, ranks, id, rank);  // an internal call that goes around by way of the hooks
}

int ncclCommInitAll(ncclComm** made, int count, const int* devices) {
  for (int i = 0; i < count; ++i) made[i] = Make(count, i, devices == nullptr ? i : devices[i]);
  return kSuccess;
}

int ncclCommSplit(ncclComm* parent, int color, int key, ncclComm** made, void*) {
  *made = color < 0 ? nullptr : Make(parent->ranks / 2, key, parent->device);
  return kSuccess;
}

int ncclCommGetAsyncError(ncclComm* communicator, int* error) {
  *error = g_group_depth == 0 ? kSuccess : 7;
  communicator->ready = communicator->ready || g_group_depth == 0;
  return kSuccess;
}

int Ask(ncclComm* communicator, int value, int* answer) {
  if (!communicator->ready) {
    ++g_queries_too_early;
    return kInvalidArgument;
  }
  *answer = value;
  return kSuccess;
}
int ncclCommCount(ncclComm* communicator, int* count) { return Ask(communicator, communicator->ranks, count); }
int ncclCommUserRank(ncclComm* communicator, int* rank) { return Ask(communicator, communicator->rank, rank); }
int ncclCommCuDevice(ncclComm* communicator, int* device) { return Ask(communicator, communicator->device, device); }

int ncclCommDestroy(ncclComm* communicator) {
  delete communicator;
  return kSuccess;
}
int ncclCommAbort(ncclComm* communicator) { return ncclCommDestroy(communicator); }

int ncclBroadcast(const void*, void*, std::size_t, int, int root, ncclComm* communicator, void*) {
  ++communicator->operations;
  return root < communicator->ranks ? kSuccess : kInvalidArgument;
}
int ncclBcast(void* buffer, std::size_t count, int type, int root, ncclComm* communicator, void* stream) {
  return ncclBroadcast(buffer, buffer, count, type, root, communicator, stream);
}
int ncclAllReduce(const void*, void*, std::size_t, int, int, ncclComm* communicator, void*) {
  ++communicator->operations;
  return kSuccess;
}
int ncclReduceScatter(const void*, void*, std::size_t, int, int, ncclComm* communicator, void*) {
  ++communicator->operations;
  return kSuccess;
}
int ncclAllGather(const void*, void*, std::size_t, int, ncclComm* communicator, void*) {
  ++communicator->operations;
  return kSuccess;
}
int ncclReduce(const void*, void*, std::size_t, int, int, int, ncclComm* communicator, void*) {
  ++communicator->operations;
  return kSuccess;
}
int ncclSend(const void*, std::size_t, int, int, ncclComm* communicator, void*) {
  ++communicator->operations;
  return kSuccess;
}
int ncclRecv(void*, std::size_t, int, int, ncclComm* communicator, void*) {
  ++communicator->operations;
  return kSuccess;
}
int ncclMemAlloc(void** address, std::size_t) {
  *address = reinterpret_cast<void*>(0xA000);
  return kSuccess;
}
int ncclMemFree(void*) { return kSuccess; }

int FakeNcclQueriesTooEarly() { return g_queries_too_early; }
}
