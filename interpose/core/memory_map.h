// What is mapped where, from /proc/self/maps: needs no lock of the loader, which a hook may not wait for (the thread
// that holds it may be waiting for the lock under which the hook runs), and no allocation.
#pragma once

#include <cstdint>
#include <string_view>

namespace ledger {

struct Mapping {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::string_view path;  // empty for anonymous memory
};

// Calls `visit` for each mapping until it returns false. Cold: reads the whole file.
using MappingVisitor = bool (*)(const Mapping& mapping, void* context);
void VisitMappings(MappingVisitor visit, void* context);

// "/usr/lib/libfoo.so.1" → "libfoo.so.1"
std::string_view BaseName(std::string_view path);

}  // namespace ledger
