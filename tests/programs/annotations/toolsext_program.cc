// Uses NVTX as programs did before it became a header: by a library.
#include <cstdint>
#include <cstdio>

#include "tests/programs/annotations/block_event.h"

extern "C" {
int nvtxRangePushA(const char*);
int nvtxRangePushW(const wchar_t*);
int nvtxRangePop();
void nvtxMarkA(const char*);
std::uint64_t nvtxRangeStartA(const char*);
void nvtxRangeEnd(std::uint64_t);
}

int main() {
  ReportBlock(0x1000);
  const int outer = nvtxRangePushA("outer");
  const int inner = nvtxRangePushW(L"inn\u00e9r");
  ReportBlock(0x2000);
  nvtxMarkA("mark");
  const std::uint64_t id = nvtxRangeStartA("wide");
  nvtxRangeEnd(id);
  const int ended = nvtxRangePop();
  nvtxRangePop();
  std::printf("%d %d %d %d\n", outer, inner, ended, id != 0);
  return 0;
}
