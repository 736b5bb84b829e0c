/* Talks to the ledger by its public interface, in C, found at run time as ledger.h says. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "interpose/include/ledger/ledger.h"

#define FIND(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(RTLD_DEFAULT, #name)

struct device {
  int8_t type;
  int8_t index;
};
static void block(uintptr_t address) {
  struct device cuda = {1, 0};
  void (*report)(void*, int64_t, size_t, size_t, struct device) =
      (void (*)(void*, int64_t, size_t, size_t, struct device))dlsym(
          RTLD_DEFAULT, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
  report((void*)address, 512, 512, 1024, cuda);
}

int main(void) {
  FIND(ledger_api_version);
  FIND(ledger_recording);
  FIND(ledger_range_push);
  FIND(ledger_range_pop);
  FIND(ledger_mark);
  FIND(ledger_tag);
  FIND(ledger_untag);
  FIND(ledger_pause);
  FIND(ledger_resume);
  FIND(ledger_flush);
  FIND(ledger_value_read);
  if (p_ledger_api_version == NULL) return 3; /* the job runs without the ledger */
  if (p_ledger_api_version() != LEDGER_API_VERSION) return 4;

  /* Dormant: all of it is allowed, and only ranges are remembered. */
  p_ledger_mark("too early");
  p_ledger_tag((void*)0x1000, 16, "too early");
  p_ledger_pause();
  p_ledger_resume();
  p_ledger_flush();
  p_ledger_range_push("before the first CUDA call");
  if (p_ledger_recording() != 0) return 5;

  block(0x1000);
  if (p_ledger_recording() != 1) return 6;
  p_ledger_range_push("evaluation");
  p_ledger_mark("now");
  p_ledger_tag((void*)0x1000, 256, "weights");
  p_ledger_value_read((void*)0x1000, 4, "train.py:88 step");
  p_ledger_untag((void*)0x1000);
  p_ledger_range_pop();
  p_ledger_range_pop();
  p_ledger_range_pop(); /* one too many */

  p_ledger_pause();
  if (p_ledger_recording() != 0) return 7;
  block(0x2000);
  p_ledger_mark("nobody listens");
  p_ledger_resume();
  p_ledger_mark(NULL);
  block(0x3000);
  p_ledger_flush();
  return 0;
}
