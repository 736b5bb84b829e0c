// Opens a library with a scope of its own, as Python opens its extensions, and calls one of its functions.
#include <dlfcn.h>

#include <cstdio>

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: open_and_run LIBRARY FUNCTION\n");
    return 2;
  }
  void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  void* const function = library == nullptr ? nullptr : dlsym(library, arguments[2]);
  if (function == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  return reinterpret_cast<int (*)()>(function)();
}
