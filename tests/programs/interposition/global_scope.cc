// What dlsym finds without CUDA in the process, and from a library that looks behind itself.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <initializer_list>

int main(int count, char** arguments) {
  dlerror();
  for (const char* symbol :
       {"cuMemAlloc_v2", "cudaMalloc", "cudaFree", "cuGetProcAddress_v2", "malloc", "noSuchFunction"}) {
    void* const found = dlsym(RTLD_DEFAULT, symbol);
    const char* const message = dlerror();
    std::printf("%s: %s, %s\n", symbol, found == nullptr ? "null" : "found",
                message == nullptr ? "no message" : "message");
  }
  void* const self = dlopen(nullptr, RTLD_NOW);
  std::printf("through the program: %s\n", dlsym(self, "cudaMalloc") == nullptr ? "null" : "found");
  std::printf("versions: %s\n", dlvsym(RTLD_DEFAULT, "dlsym", "GLIBC_2.34") == nullptr ? "none" : "found");
  // A library with a `$ORIGIN` run path opens its neighbour by its bare name; RTLD_NEXT is relative to the library.
  for (int i = 1; i < count; ++i) {
    void* const library = dlopen(arguments[i], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::printf("cannot open: %s\n", dlerror());
      continue;
    }
    const auto describe = reinterpret_cast<void (*)()>(dlsym(library, "Describe"));
    describe();
  }
  return 0;
}
