#include "interpose/core/elf_symbol.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include <cstdint>

namespace ledger {
namespace {

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;      // DT_HASH: {buckets, chains, ...}; there are as many chains as symbols
  const std::uint32_t* gnu_hash = nullptr;  // DT_GNU_HASH
};

// glibc relocates the addresses in the dynamic section of a loaded library, musl leaves them relative to its base.
template <typename Target>
Target Pointer(const dl_phdr_info& library, ElfW(Addr) address) {
  const auto base = library.dlpi_addr;
  return reinterpret_cast<Target>(address < base ? base + address : address);
}

Tables TablesOf(const dl_phdr_info& library) {
  Tables tables;
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = library.dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + header.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) tables.symbols = Pointer<const ElfW(Sym)*>(library, address);
      if (entry->d_tag == DT_STRTAB) tables.names = Pointer<const char*>(library, address);
      if (entry->d_tag == DT_HASH) tables.hash = Pointer<const std::uint32_t*>(library, address);
      if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = Pointer<const std::uint32_t*>(library, address);
    }
  }
  return tables;
}

// The GNU table has no count: the last symbol is the end of the chain that begins last.
std::uint32_t CountByGnuHash(const std::uint32_t* table) {
  const std::uint32_t buckets = table[0], first = table[1], bloom_words = table[2];
  const std::uint32_t* const bucket = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) last = bucket[i] > last ? bucket[i] : last;
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

struct Search {
  const char* name;
  void* found;
};

int SearchLibrary(dl_phdr_info* library, std::size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  const Tables tables = TablesOf(*library);
  if (tables.symbols == nullptr || tables.names == nullptr) return 0;
  const std::uint32_t count = tables.hash != nullptr       ? tables.hash[1]
                              : tables.gnu_hash != nullptr ? CountByGnuHash(tables.gnu_hash)
                                                           : 0;
  for (std::uint32_t i = 1; i < count; ++i) {
    const ElfW(Sym)& symbol = tables.symbols[i];
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0) continue;
    if (strcmp(tables.names + symbol.st_name, search.name) != 0) continue;
    // Not this library's own definition, which is the one in front.
    const auto address = library->dlpi_addr + symbol.st_value;
    const auto here = reinterpret_cast<ElfW(Addr)>(&SearchLibrary);
    bool ours = false;
    for (int segment = 0; segment < library->dlpi_phnum; ++segment) {
      const ElfW(Phdr)& header = library->dlpi_phdr[segment];
      const ElfW(Addr) begin = library->dlpi_addr + header.p_vaddr;
      ours = ours || (header.p_type == PT_LOAD && here >= begin && here < begin + header.p_memsz);
    }
    if (ours) return 0;
    search.found = reinterpret_cast<void*>(address);
    return 1;
  }
  return 0;
}

}  // namespace

void* FindInLoadedLibraries(const char* name) {
  Search search = {name, nullptr};
  dl_iterate_phdr(SearchLibrary, &search);
  return search.found;
}

}  // namespace ledger
