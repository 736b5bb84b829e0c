// The real functions behind hooks that are found through the scope of whoever calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ledger {

// The extent of the library that an address lies in, from its first to its last byte; empty when it lies in none.
struct Extent {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};
Extent ExtentAround(const void* address);

// One entry point of another library. It is looked for in the scope of the calling library, so that two copies of the
// library in one process stay apart, and kept per caller. Trivially destructible; a library that called once, and the
// one that it reached, stay loaded.
class RealFunction {
 public:
  // `soname`: where to look when the caller's scope does not have it.
  constexpr RealFunction(const char* name, const char* soname) : name_(name), soname_(soname) {}

  // Null when there is none.
  template <typename Signature>
  Signature* For(const void* caller) {
    return reinterpret_cast<Signature*>(Find(caller));
  }

 private:
  // The code of one library that calls, and what it reaches. `begin` is written last.
  struct Caller {
    std::atomic<std::uintptr_t> begin{0};
    std::uintptr_t end = 0;
    void* function = nullptr;
    std::atomic<bool> claimed{false};
  };
  static constexpr std::size_t kCallers = 4;

  void* Find(const void* caller) {
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    for (const Caller& known : callers_) {
      const std::uintptr_t begin = known.begin.load(std::memory_order_acquire);
      if (begin == 0) break;
      if (address >= begin && address < known.end) return known.function;
    }
    return FindSlowly(caller);
  }
  void* FindSlowly(const void* caller);

  const char* name_;
  const char* soname_;
  Caller callers_[kCallers];
};

}  // namespace ledger
