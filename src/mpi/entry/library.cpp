#include "mpi/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "mpi/functions.hpp"

namespace spinloom::mpi {
namespace {

constexpr const char* known_functions[] = {
#define SPINLOOM_NAME(name) #name,
    SPINLOOM_MPI_FUNCTIONS(SPINLOOM_NAME)
#undef SPINLOOM_NAME
};

struct Object {
  std::string path;
  uint64_t base = 0;
  uint64_t first = 0;  // of its code
  uint64_t last = 0;
  const ElfW(Dyn) * dynamic = nullptr;
};

std::vector<Object> objects() {
  std::vector<Object> found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* into) {
        Object object;
        object.path = info->dlpi_name;
        object.base = info->dlpi_addr;
        object.first = UINT64_MAX;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const uint64_t start = info->dlpi_addr + part.p_vaddr;
          if (part.p_type == PT_DYNAMIC) object.dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          object.first = std::min(object.first, start);
          object.last = std::max(object.last, start + part.p_memsz);
        }
        static_cast<std::vector<Object>*>(into)->push_back(std::move(object));
        return 0;
      },
      &found);
  return found;
}

std::string_view file_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool holds(const Object& object, const void* address) {
  const auto place = reinterpret_cast<uint64_t>(address);
  return place >= object.first && place < object.last;
}

// Fortran's bindings call the public functions for the program: those are not parts of the MPI.
bool is_mpis(std::string_view file) {
  return file.starts_with("mca_") || file.starts_with("libopen-pal") || file.starts_with("libopen-rte") ||
         file.starts_with("libmca_common");
}

bool is_receive(std::string_view name) {
  if (!name.starts_with("PMPI_")) return false;
  name.remove_prefix(5);
  if (name.starts_with("Precv") || name.starts_with("T_")) return false;  // partitioned messages match each other only
  for (const std::string_view word : {"recv", "Recv", "probe"}) {
    if (name.find(word) != std::string_view::npos) return true;
  }
  return false;
}

bool is_known(std::string_view name) {
  name.remove_prefix(5);
  return std::ranges::any_of(known_functions, [name](std::string_view known) { return known == name; });
}

// How many symbols an object has: its GNU hash table does not say so, but its chains end with the last one.
uint32_t symbols_of(const uint32_t* hash) {
  const uint32_t buckets = hash[0];
  const uint32_t first = hash[1];
  const uint32_t* const bucket = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
  const uint32_t* const chain = bucket + buckets;
  uint32_t last = 0;
  for (uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

std::vector<std::string_view> names_of(const Object& object) {
  const char* texts = nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* entry = object.dynamic; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) texts = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const uint32_t*>(entry->d_un.d_ptr);
  }
  std::vector<std::string_view> names;
  if (texts == nullptr || symbols == nullptr || hash == nullptr) return names;
  const uint32_t count = symbols_of(hash);
  for (uint32_t i = 0; i < count; ++i) {
    if (symbols[i].st_shndx != SHN_UNDEF) names.emplace_back(texts + symbols[i].st_name);
  }
  return names;
}

}  // namespace

Library& Library::of_process() {
  static auto* const library = new Library;  // calls come until the very end of the process
  return *library;
}

bool Library::find() {
  if (handle_ != nullptr) return true;
  for (const Object& object : objects()) {
    if (object.path.empty() || holds(object, reinterpret_cast<const void*>(&objects))) continue;
    void* const handle = dlopen(object.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* const init = dlsym(handle, "PMPI_Init");
    if (init != nullptr && holds(object, init)) {
      handle_ = handle;
      path_ = object.path;
      main_ = {object.first, object.last - object.first};
      break;
    }
    dlclose(handle);
  }
  if (handle_ == nullptr) return false;
  if (dlsym(handle_, "ompi_mpi_comm_world") != nullptr) {
    abi_ = Abi::openmpi;
  } else {
    abi_ = file_of(path_).starts_with("libmpi_abi") ? Abi::standard : Abi::mpich;
  }
  learn();
  return true;
}

void Library::learn() {
  parts_.clear();
  for (auto& place : outside_) place.store(0, std::memory_order_relaxed);
  bool is_program = true;  // the first object is
  for (const Object& object : objects()) {
    if (is_program) program_ = {object.first, object.last - object.first};
    is_program = false;
    if (is_mpis(file_of(object.path))) parts_.push_back({object.first, object.last - object.first});
  }
  std::ranges::sort(parts_, {}, &Span::first);
}

bool Library::is_inside(uint64_t place) const {
  if (place - main_.first < main_.bytes || is_part(place)) return true;
  outside_[place % outside_.size()].store(place, std::memory_order_relaxed);
  return false;
}

bool Library::is_part(uint64_t place) const {
  auto after = std::ranges::upper_bound(parts_, place, {}, &Span::first);
  if (after == parts_.begin()) return false;
  --after;
  return place - after->first < after->bytes;
}

void* Library::function(const std::string& name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name.c_str());
}

void* Library::between(const std::string& name) const {
  void* const next = dlsym(RTLD_NEXT, name.c_str());
  if (next == nullptr) return nullptr;
  const auto place = reinterpret_cast<uint64_t>(next);
  return place - main_.first < main_.bytes ? nullptr : next;
}

// A program that is not position-independent has the MPI's data in copies of its own, which the global scope finds first.
void* Library::object(const char* name) const {
  void* const copy = dlsym(RTLD_DEFAULT, name);
  return copy != nullptr ? copy : dlsym(handle_, name);
}

std::string Library::unknown_receives() const {
  std::string unknown;
  for (const Object& object : objects()) {
    if (object.path != path_) continue;
    for (const std::string_view name : names_of(object)) {
      if (!is_receive(name) || is_known(name)) continue;
      unknown += (unknown.empty() ? "" : ", ") + std::string(name);
    }
  }
  return unknown;
}

}  // namespace spinloom::mpi
