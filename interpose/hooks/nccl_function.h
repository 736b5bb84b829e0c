// NCCL's own functions behind ours.
#pragma once

#include "interpose/hooks/real_function.h"

namespace ledger::nccl {

// Is this the address of code in an NCCL? Its functions call one another by way of the linker's table, and so reach
// ours; such a call is part of the one that we have seen already.
bool InsideNccl(const void* address);

class Function {
 public:
  constexpr explicit Function(const char* name) : real_(name, "libnccl.so.2") {}

  // Null when that NCCL has no such function (counted).
  template <typename Signature>
  Signature* For(const void* caller) {
    auto* const function = real_.For<Signature>(caller);
    if (function == nullptr || !seen_.load(std::memory_order_relaxed)) [[unlikely]] {
      Note(reinterpret_cast<const void*>(function));
    }
    return function;
  }

 private:
  void Note(const void* function);

  RealFunction real_;
  std::atomic<bool> seen_{false};
};

}  // namespace ledger::nccl
