// A library's version in the parts that its ...GetProperty hands out.
#ifndef TOOLS_SIMGPU_MATH_VERSION_H_
#define TOOLS_SIMGPU_MATH_VERSION_H_

#include <library_types.h>

namespace simgpu::math {

struct Version {
  int major_part, minor_part, patch_level;

  int Part(libraryPropertyType type) const {
    switch (type) {
      case MAJOR_VERSION:
        return major_part;
      case MINOR_VERSION:
        return minor_part;
      default:
        return patch_level;
    }
  }
};

}  // namespace simgpu::math

#endif  // TOOLS_SIMGPU_MATH_VERSION_H_
