// The part of NCCL's interface that the tests use.
#pragma once

#include <cstddef>
#include <cstdint>

struct ncclComm {
  int ranks;
  int rank;
  int device;
  bool ready;
  int operations;
};
struct ncclUniqueId {
  char internal[128];
};

extern "C" {
int ncclCommInitRank(ncclComm**, int ranks, ncclUniqueId, int rank);
int ncclCommInitRankConfig(ncclComm**, int ranks, ncclUniqueId, int rank, void* config);
int ncclCommInitAll(ncclComm**, int count, const int* devices);
int ncclCommSplit(ncclComm*, int color, int key, ncclComm**, void* config);
int ncclCommDestroy(ncclComm*);
int ncclCommAbort(ncclComm*);
int ncclGroupStart();
int ncclGroupEnd();
int ncclGroupSimulateEnd(void*);
int ncclAllReduce(const void*, void*, std::size_t, int type, int op, ncclComm*, void* stream);
int ncclReduce(const void*, void*, std::size_t, int type, int op, int root, ncclComm*, void* stream);
int ncclBroadcast(const void*, void*, std::size_t, int type, int root, ncclComm*, void* stream);
int ncclBcast(void*, std::size_t, int type, int root, ncclComm*, void* stream);
int ncclAllGather(const void*, void*, std::size_t, int type, ncclComm*, void* stream);
int ncclReduceScatter(const void*, void*, std::size_t, int type, int op, ncclComm*, void* stream);
int ncclSend(const void*, std::size_t, int type, int peer, ncclComm*, void* stream);
int ncclRecv(void*, std::size_t, int type, int peer, ncclComm*, void* stream);
int ncclAlltoAll(const void*, void*, std::size_t, int type, ncclComm*, void* stream) __attribute__((weak));
int ncclMemAlloc(void**, std::size_t);
int ncclMemFree(void*);
int FakeNcclQueriesTooEarly();
}
