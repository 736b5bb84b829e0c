// NCCL's own functions behind ours.
#pragma once

#include "interpose/hooks/real_function.h"

namespace ledger::nccl {

// A call of one of our hooks, from its beginning to its end. NCCL's functions call one another by way of the linker's
// table, and so reach our hooks again: such a call is part of the one that we have seen already.
class Entry {
 public:
  explicit Entry(const void* caller);
  ~Entry();
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  // Does NCCL itself call? On this thread, inside a hook; or from a thread of its own, out of its own code.
  bool internal() const { return internal_; }

  // In whose scope the real function is. For a call inside a hook the hook's caller: a jump at the end of a function of
  // NCCL looks as if we had made the call.
  const void* caller() const { return caller_; }

 private:
  const void* outer_;
  const void* caller_;
  bool internal_;
};

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
