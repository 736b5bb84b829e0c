#pragma once

namespace simgpu {

struct Error {
  int value;
  const char* name;
  const char* text;
};

// Generated from cuda.h.
extern const Error kErrors[];
extern const int kErrorCount;

}  // namespace simgpu
