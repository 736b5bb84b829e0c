#pragma once

namespace c10 {

struct Device {
  signed char type;
  signed char index;
};
void reportMemoryUsageToProfiler(void*, long change, unsigned long allocated, unsigned long reserved, Device);
void reportMemoryUsageToProfiler(void*, long change, long allocated, long reserved, Device);
void reportOutOfMemoryToProfiler(long requested, unsigned long allocated, unsigned long reserved, Device);
void reportOutOfMemoryToProfiler(long requested, long allocated, long reserved, Device);

}  // namespace c10

struct C10Calls {
  int memory = 0;
  int memory_signed = 0;
  int oom = 0;
  int oom_signed = 0;
  long sum = 0;
};
C10Calls TakeC10Calls();
