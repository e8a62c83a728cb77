#include "mpi/entry/loaded.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>

namespace spinloom::mpi {
namespace {

uint32_t hash_of(std::string_view name) {
  uint32_t value = 5381;
  for (const char letter : name) value = value * 33 + static_cast<unsigned char>(letter);
  return value;
}

// GNU's hash table: a filter of 64-bit words, buckets, and chains whose last hash is odd.
struct GnuHashTable {
  uint32_t buckets, first, filter_words, shift;
  const uint64_t* filter;
  const uint32_t* bucket;
  const uint32_t* chain;

  explicit GnuHashTable(const uint32_t* hash)
      : buckets(hash[0]),
        first(hash[1]),
        filter_words(hash[2]),
        shift(hash[3]),
        filter(reinterpret_cast<const uint64_t*>(hash + 4)),
        bucket(reinterpret_cast<const uint32_t*>(filter + filter_words)),
        chain(bucket + buckets) {}
  [[nodiscard]] bool may_have(uint32_t value) const {
    const uint64_t bits = (uint64_t{1} << (value % 64)) | (uint64_t{1} << ((value >> shift) % 64));
    return (filter[value / 64 % filter_words] & bits) == bits;
  }
};

uint32_t old_hash_of(std::string_view name) {
  uint32_t value = 0;
  for (const char letter : name) {
    value = (value << 4) + static_cast<unsigned char>(letter);
    const uint32_t high = value & 0xf0000000;
    value = (value ^ (high >> 24)) & ~high;
  }
  return value;
}

// Finds a name by System V's table: the numbers of buckets and symbols, the buckets, and for each symbol the next one.
const ElfW(Sym) * find_in_old(const LoadedObject& object, std::string_view name) {
  const uint32_t buckets = object.hash[0];
  if (buckets == 0) return nullptr;
  const uint32_t* const next = object.hash + 2 + buckets;
  for (uint32_t i = object.hash[2 + old_hash_of(name) % buckets]; i != STN_UNDEF; i = next[i]) {
    const ElfW(Sym) & symbol = object.symbols[i];
    if (LoadedObject::is_defined(symbol) && object.name(symbol) == name) return &symbol;
  }
  return nullptr;
}

}  // namespace

// The loader has changed the offsets in these entries to addresses, except in the kernel's own object (vDSO).
LoadedObject LoadedObject::of(const dl_phdr_info& info) {
  LoadedObject object;
  object.path = info.dlpi_name;
  object.base = info.dlpi_addr;
  object.segments = {info.dlpi_phdr, info.dlpi_phnum};
  const auto dynamic = std::ranges::find(object.segments, ElfW(Word){PT_DYNAMIC}, &ElfW(Phdr)::p_type);
  if (dynamic == object.segments.end()) return object;
  const auto at = [&](const ElfW(Dyn) & entry) {
    const uint64_t place = entry.d_un.d_ptr;
    return place < object.base ? object.base + place : place;
  };
  const uint32_t* old_hash = nullptr;
  uint64_t relocations = 0;
  uint64_t relocation_bytes = 0;
  uint64_t calls = 0;
  uint64_t call_bytes = 0;
  const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.base + dynamic->p_vaddr);  // NOLINT: an address
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_STRTAB: object.strings = reinterpret_cast<const char*>(at(*entry)); break;  // NOLINT
      case DT_SYMTAB: object.symbols = reinterpret_cast<const ElfW(Sym)*>(at(*entry)); break;  // NOLINT
      case DT_GNU_HASH: object.hash = reinterpret_cast<const uint32_t*>(at(*entry)); break;  // NOLINT
      case DT_HASH: old_hash = reinterpret_cast<const uint32_t*>(at(*entry)); break;  // NOLINT
      case DT_RELA: relocations = at(*entry); break;
      case DT_RELASZ: relocation_bytes = entry->d_un.d_val; break;
      case DT_JMPREL: calls = at(*entry); break;
      case DT_PLTRELSZ: call_bytes = entry->d_un.d_val; break;
      default: break;
    }
  }
  object.relocations = {reinterpret_cast<const ElfW(Rela)*>(relocations),
                        relocation_bytes / sizeof(ElfW(Rela))};  // NOLINT
  object.calls = {reinterpret_cast<const ElfW(Rela)*>(calls), call_bytes / sizeof(ElfW(Rela))};  // NOLINT
  object.is_old_hash = object.hash == nullptr;
  if (object.is_old_hash) object.hash = old_hash;
  if (object.strings == nullptr || object.symbols == nullptr) object.hash = nullptr;
  return object;
}

bool LoadedObject::holds(const void* address) const {
  const auto place = reinterpret_cast<uint64_t>(address);
  return std::ranges::any_of(segments, [&](const ElfW(Phdr) & part) {
    return part.p_type == PT_LOAD && place - base - part.p_vaddr < part.p_memsz;
  });
}

const ElfW(Sym) * LoadedObject::find(std::string_view name) const {
  if (hash == nullptr) return nullptr;
  if (is_old_hash) return find_in_old(*this, name);
  const GnuHashTable table(hash);
  const uint32_t wanted = hash_of(name);
  if (table.buckets == 0 || !table.may_have(wanted)) return nullptr;
  uint32_t i = table.bucket[wanted % table.buckets];
  if (i < table.first) return nullptr;
  for (;; ++i) {
    const uint32_t value = table.chain[i - table.first];
    if ((value | 1) == (wanted | 1) && is_defined(symbols[i]) && this->name(symbols[i]) == name) return &symbols[i];
    if ((value & 1) != 0) return nullptr;
  }
}

uint32_t LoadedObject::count() const {
  if (hash == nullptr) return 0;
  if (is_old_hash) return hash[1];
  const GnuHashTable table(hash);
  uint32_t last = 0;
  for (uint32_t i = 0; i < table.buckets; ++i) last = std::max(last, table.bucket[i]);
  if (last < table.first) return table.first;
  while ((table.chain[last - table.first] & 1) == 0) ++last;
  return last + 1;
}

void iterate(int (*look)(dl_phdr_info*, size_t, void*), void* into) {
  using Iterate = int(int (*)(dl_phdr_info*, size_t, void*), void*);
#if defined(__aarch64__)
  constexpr const char* version = "GLIBC_2.17";
#else
  constexpr const char* version = "GLIBC_2.2.5";
#endif
  static std::atomic<Iterate*> cached{nullptr};
  Iterate* function = cached.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<Iterate*>(dlvsym(RTLD_NEXT, "dl_iterate_phdr", version));
    if (function == nullptr) function = &dl_iterate_phdr;
    cached.store(function, std::memory_order_relaxed);
  }
  function(look, into);
}

uint64_t load_count() {
  uint64_t loaded = 0;
  iterate(
      [](dl_phdr_info* info, size_t, void* into) {
        *static_cast<uint64_t*>(into) = info->dlpi_adds;
        return 1;
      },
      &loaded);
  return loaded;
}

}  // namespace spinloom::mpi
