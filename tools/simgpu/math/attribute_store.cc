#include "tools/simgpu/math/attribute_store.h"

#include <cstring>

namespace simgpu::math {

void AttributeStore::Initialise(std::size_t descriptor_bytes) {
  std::memset(static_cast<void*>(table_), 0, descriptor_bytes);
  table_->capacity = static_cast<std::uint32_t>((descriptor_bytes - offsetof(Table, entries)) / sizeof(Entry));
}

void AttributeStore::Set(int attribute, const void* value, std::size_t size) {
  if (size > sizeof(Entry::value)) return;
  Entry* entry = table_->entries;
  Entry* const end = entry + table_->count;
  while (entry != end && entry->attribute != attribute) ++entry;
  if (entry == end) {
    if (table_->count == table_->capacity) return;
    ++table_->count;
  }
  entry->attribute = attribute;
  entry->size = static_cast<std::uint32_t>(size);
  std::memcpy(&entry->value, value, size);
}

bool AttributeStore::Get(int attribute, void* value, std::size_t size, std::size_t* written) const {
  for (const Entry* entry = table_->entries; entry != table_->entries + table_->count; ++entry) {
    if (entry->attribute != attribute) continue;
    if (written != nullptr) *written = entry->size;
    if (value == nullptr || size < entry->size) return value == nullptr;
    std::memcpy(value, &entry->value, entry->size);
    return true;
  }
  return false;
}

}  // namespace simgpu::math
