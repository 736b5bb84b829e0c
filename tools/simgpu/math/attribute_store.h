// Attributes of an opaque descriptor, kept in place: cuBLASLt lets callers provide the memory of a descriptor and never
// tells when they are done with it, so nothing may be allocated for it.
#ifndef TOOLS_SIMGPU_MATH_ATTRIBUTE_STORE_H_
#define TOOLS_SIMGPU_MATH_ATTRIBUTE_STORE_H_

#include <cstddef>
#include <cstdint>

namespace simgpu::math {

// A view of a descriptor's bytes: a small table of (attribute, size, value). Values of more than eight bytes, and
// those beyond the table's capacity, are accepted and forgotten; reading them back says that they are unset.
class AttributeStore {
 public:
  // Enough for a descriptor that this library allocates itself.
  static constexpr std::size_t kBytes = 512;

  explicit AttributeStore(void* descriptor) : table_(static_cast<Table*>(descriptor)) {}

  void Initialise(std::size_t descriptor_bytes);
  void Set(int attribute, const void* value, std::size_t size);
  // False if the attribute is unset, or its value is larger than `size`.
  bool Get(int attribute, void* value, std::size_t size, std::size_t* written) const;

 private:
  struct Entry {
    std::int32_t attribute;
    std::uint32_t size;
    std::uint64_t value;
  };
  struct Table {
    std::uint32_t capacity;
    std::uint32_t count;
    Entry entries[1];  // `capacity` of them
  };

  Table* const table_;
};

}  // namespace simgpu::math

#endif  // TOOLS_SIMGPU_MATH_ATTRIBUTE_STORE_H_
