// A library that stands in front of `strlen` itself, finds the real one by RTLD_NEXT, and opens its neighbour by name.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

extern "C" [[gnu::visibility("default")]] int NextClientMarker() { return 1; }

extern "C" [[gnu::visibility("default")]] void Describe() {
  void* const next = dlsym(RTLD_NEXT, "NextClientMarker");
  std::printf("behind the library: %s\n", next == nullptr                                      ? "null"
                                          : next == reinterpret_cast<void*>(&NextClientMarker) ? "itself"
                                                                                               : "another");
  std::printf("malloc behind it: %s\n", dlsym(RTLD_NEXT, "malloc") == nullptr ? "null" : "found");
  std::printf("cudaMalloc behind it: %s\n", dlsym(RTLD_NEXT, "cudaMalloc") == nullptr ? "null" : "found");
  void* const neighbour = dlopen("libledger_test_neighbour.so", RTLD_NOW);
  std::printf("neighbour by its bare name: %s\n", neighbour == nullptr ? dlerror() : "opened");
}
