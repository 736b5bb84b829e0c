#include "tools/simgpu/nccl/data_types.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace simgpu::nccl {
namespace {

// How a type is stored, and what is computed with.
template <class T>
struct Native {
  using Storage = T;
  using Value = T;
  static Value Load(Storage stored) { return stored; }
  static Storage Store(Value value) { return value; }
};

struct Half {
  using Storage = __half;
  using Value = float;
  static Value Load(Storage stored) { return __half2float(stored); }
  static Storage Store(Value value) { return __float2half_rn(value); }
};

struct BrainFloat {
  using Storage = __nv_bfloat16;
  using Value = float;
  static Value Load(Storage stored) { return __bfloat162float(stored); }
  static Storage Store(Value value) { return __float2bfloat16_rn(value); }
};

template <__nv_fp8_interpretation_t kFormat>
struct Float8 {
  using Storage = __nv_fp8_storage_t;
  using Value = float;
  static Value Load(Storage stored) { return __half2float(__half(__nv_cvt_fp8_to_halfraw(stored, kFormat))); }
  // Saturates, as the device's conversion does.
  static Storage Store(Value value) { return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kFormat); }
};

// Calls `function` with a value of the type's description above; nothing for what is no data type.
template <class Function>
void Dispatch(ncclDataType_t type, Function function) {
  switch (type) {
    case ncclInt8:
      return function(Native<std::int8_t>());
    case ncclUint8:
      return function(Native<std::uint8_t>());
    case ncclInt32:
      return function(Native<std::int32_t>());
    case ncclUint32:
      return function(Native<std::uint32_t>());
    case ncclInt64:
      return function(Native<std::int64_t>());
    case ncclUint64:
      return function(Native<std::uint64_t>());
    case ncclFloat16:
      return function(Half());
    case ncclFloat32:
      return function(Native<float>());
    case ncclFloat64:
      return function(Native<double>());
    case ncclBfloat16:
      return function(BrainFloat());
    case ncclFloat8e4m3:
      return function(Float8<__NV_E4M3>());
    case ncclFloat8e5m2:
      return function(Float8<__NV_E5M2>());
    case ncclNumTypes:
      return;
  }
}

// Integers wrap around; signed overflow would be undefined, so the work is done unsigned.
template <class T>
T Add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

template <class T>
T Multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

// Integers are divided in 64 bits, since the number of ranks need not fit into T, and rounded towards zero.
template <class T>
T Divide(T sum, std::size_t ranks) {
  if constexpr (std::is_floating_point_v<T>) {
    return sum / static_cast<T>(ranks);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(static_cast<std::int64_t>(sum) / static_cast<std::int64_t>(ranks));
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(sum) / ranks);
  }
}

template <class T>
T Combine(T a, T b, ncclRedOp_t operation) {
  switch (operation) {
    case ncclProd:
      return Multiply(a, b);
    case ncclMax:
      if constexpr (std::is_floating_point_v<T>) return std::fmax(a, b);
      return a < b ? b : a;
    case ncclMin:
      if constexpr (std::is_floating_point_v<T>) return std::fmin(a, b);
      return b < a ? b : a;
    default:
      return Add(a, b);
  }
}

// Elements are copied in and out by memcpy: a program may pass buffers of any alignment.
template <class T>
T Element(const void* array, std::size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(array) + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void SetElement(void* array, std::size_t index, T value) {
  std::memcpy(static_cast<char*>(array) + index * sizeof(T), &value, sizeof(T));
}

}  // namespace

std::size_t SizeOf(ncclDataType_t type) {
  std::size_t size = 0;
  Dispatch(type, [&](auto description) { size = sizeof(typename decltype(description)::Storage); });
  return size;
}

const char* KernelNameOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return "u8";
    case ncclInt32:
    case ncclUint32:
      return "u32";
    case ncclInt64:
    case ncclUint64:
      return "u64";
    case ncclFloat16:
      return "f16";
    case ncclFloat32:
      return "f32";
    case ncclFloat64:
      return "f64";
    case ncclBfloat16:
      return "bf16";
    case ncclFloat8e4m3:
      return "f8e4m3";
    case ncclFloat8e5m2:
      return "f8e5m2";
    case ncclNumTypes:
      break;
  }
  return "unknown";
}

void Reduce(const std::vector<const void*>& inputs, void* output, std::size_t count, ncclDataType_t type,
            ncclRedOp_t operation) {
  Dispatch(type, [&](auto description) {
    using Description = decltype(description);
    using Storage = typename Description::Storage;
    for (std::size_t i = 0; i < count; ++i) {
      auto value = Description::Load(Element<Storage>(inputs[0], i));
      for (std::size_t rank = 1; rank < inputs.size(); ++rank) {
        value = Combine(value, Description::Load(Element<Storage>(inputs[rank], i)), operation);
      }
      if (operation == ncclAvg) value = Divide(value, inputs.size());
      SetElement(output, i, Description::Store(value));
    }
  });
}

void Scale(void* data, std::size_t count, ncclDataType_t type, const void* scalar) {
  Dispatch(type, [&](auto description) {
    using Description = decltype(description);
    using Storage = typename Description::Storage;
    const auto factor = Description::Load(Element<Storage>(scalar, 0));
    for (std::size_t i = 0; i < count; ++i) {
      SetElement(data, i, Description::Store(Multiply(Description::Load(Element<Storage>(data, i)), factor)));
    }
  });
}

}  // namespace simgpu::nccl
