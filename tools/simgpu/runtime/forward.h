// Forwarding of a runtime call to the driver function that does the work.
//
//   return Forward<&Driver::cuEventQuery>(event);
//
// makes sure that the driver is loaded and the thread has a context, converts every argument to the type of the
// driver's parameter (the two APIs give different names to types of one layout), calls, and records the error.
#ifndef TOOLS_SIMGPU_RUNTIME_FORWARD_H_
#define TOOLS_SIMGPU_RUNTIME_FORWARD_H_

#include <bit>
#include <cstdint>
#include <type_traits>

#include "tools/simgpu/runtime/context.h"
#include "tools/simgpu/runtime/driver.h"
#include "tools/simgpu/runtime/error.h"

namespace simgpu::runtime {

template <class To, class From>
To ConvertArgument(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_null_pointer_v<From>) {
    return nullptr;
  } else if constexpr (std::is_pointer_v<To> && std::is_pointer_v<From> &&
                       std::is_function_v<std::remove_pointer_t<From>>) {
    return reinterpret_cast<To>(value);
  } else if constexpr (std::is_pointer_v<To> && std::is_pointer_v<From>) {
    // Some driver functions leave out a const that the runtime's prototype has; neither writes.
    return reinterpret_cast<To>(const_cast<void*>(static_cast<const void*>(value)));
  } else if constexpr (std::is_pointer_v<From>) {
    return static_cast<To>(reinterpret_cast<std::uintptr_t>(value));
  } else if constexpr (std::is_pointer_v<To>) {
    return reinterpret_cast<To>(static_cast<std::uintptr_t>(value));
  } else if constexpr (std::is_class_v<To>) {
    return std::bit_cast<To>(value);
  } else {
    return static_cast<To>(value);
  }
}

template <class... Parameters, class... Arguments>
cudaError_t CallDriver(CUresult(CUDAAPI* function)(Parameters...), Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "the driver function takes other parameters");
  if (function == nullptr) return cudaErrorCallRequiresNewerDriver;
  return FromDriver(function(ConvertArgument<Parameters>(arguments)...));
}

// For functions that work without a current context.
template <auto Member, class... Arguments>
cudaError_t ForwardWithoutContext(Arguments... arguments) {
  const Driver& driver = GetDriver();
  return Record(driver.status != cudaSuccess ? driver.status : CallDriver(driver.*Member, arguments...));
}

template <auto Member, class... Arguments>
cudaError_t Forward(Arguments... arguments) {
  const cudaError_t ready = EnsureContext();
  return Record(ready != cudaSuccess ? ready : CallDriver(GetDriver().*Member, arguments...));
}

}  // namespace simgpu::runtime

#endif  // TOOLS_SIMGPU_RUNTIME_FORWARD_H_
