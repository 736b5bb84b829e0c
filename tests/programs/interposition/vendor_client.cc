// A library that looks up a driver function by dlsym and says whose it got. Built under an ordinary name, and under the
// name of NVIDIA's tool library, which is to get the driver's own.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

extern "C" [[gnu::visibility("default")]] void Describe() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = driver == nullptr ? nullptr : dlsym(driver, "cuMemAlloc_v2");
  Dl_info info = {};
  const bool known = found != nullptr && dladdr(found, &info) != 0 && info.dli_fname != nullptr;
  const char* const slash = known ? std::strrchr(info.dli_fname, '/') : nullptr;
  std::printf("%s: cuMemAlloc_v2 of %s\n", CLIENT_NAME, slash == nullptr ? "nobody" : slash + 1);
}
