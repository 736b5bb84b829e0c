// NCCL's own functions behind ours.
#pragma once

#include <atomic>
#include <cstdint>

namespace ledger::nccl {

// One entry point of NCCL. Finds the real function in the scope of the caller, so that two NCCLs in one process stay
// apart, and keeps it per calling library. Trivially destructible; libraries that called once stay loaded.
class Function {
 public:
  constexpr explicit Function(const char* name) : name_(name) {}

  // Null when that NCCL has no such function (counted at each call).
  template <typename Signature>
  Signature* For(const void* caller) {
    return reinterpret_cast<Signature*>(Find(caller));
  }

 private:
  // The code of one library that calls, and what it is to reach.
  struct Caller {
    std::atomic<std::uintptr_t> begin{0};
    std::uintptr_t end = 0;
    void* function = nullptr;
    std::atomic<bool> claimed{false};
  };
  static constexpr std::size_t kCallers = 4;

  void* Find(const void* caller);
  void* FindSlowly(const void* caller);

  const char* name_;
  Caller callers_[kCallers];
};

// Is this the address of code in an NCCL? Its functions call one another by way of the linker's table, and so reach ours;
// such a call is part of the one that we have seen already.
bool InsideNccl(const void* address);

}  // namespace ledger::nccl
