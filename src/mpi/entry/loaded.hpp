// Loaded - the objects of this process as its loader has them, and the symbols that they define.
//
// Contract: for_each_loaded(look) shows each object in the loader's order until look(object) returns true. find() gives
//   an object's own definition of a name. load_count() changes whenever the loader has loaded something more.
// Invariants: (1) nothing is allocated, and nothing of the loader is called but dl_iterate_phdr, and dlvsym once to
//   find it. So all functions may be used while a program is within dlsym or malloc. Threads: any. Time: none.
#pragma once

#include <link.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace spinloom::mpi {

struct LoadedObject {
  const char* path = "";
  uint64_t base = 0;
  std::span<const ElfW(Phdr)> segments;
  const char* strings = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const uint32_t* hash = nullptr;  // GNU's table, else System V's; null if there is no usable one
  bool is_old_hash = false;
  std::span<const ElfW(Rela)> relocations, calls;  // relocations of data, and of called functions

  static LoadedObject of(const dl_phdr_info& info);
  [[nodiscard]] bool holds(const void* address) const;
  [[nodiscard]] const ElfW(Sym) * find(std::string_view name) const;
  // The number of symbols: GNU's table does not have it, but its chains end with the last symbol.
  [[nodiscard]] uint32_t count() const;
  [[nodiscard]] std::string_view name(const ElfW(Sym) & symbol) const { return strings + symbol.st_name; }
  [[nodiscard]] void* address_of(const ElfW(Sym) & symbol) const {
    return reinterpret_cast<void*>(base + symbol.st_value);  // NOLINT: an address
  }
  [[nodiscard]] static bool is_defined(const ElfW(Sym) & symbol) {
    return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0;
  }
};

// Calls the C library's dl_iterate_phdr. ThreadSanitizer replaces that function; its version must not be called before
// ThreadSanitizer has started, but it calls dlsym, and so this, while it starts.
void iterate(int (*look)(dl_phdr_info*, size_t, void*), void* into);

template <class Look>
void for_each_loaded(Look look) {
  iterate([](dl_phdr_info* info, size_t,
             void* into) { return (*static_cast<Look*>(into))(LoadedObject::of(*info)) ? 1 : 0; },
          &look);
}

[[nodiscard]] uint64_t load_count();

}  // namespace spinloom::mpi
