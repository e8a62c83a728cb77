#include "mpi/entry/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/zeroed_blocks.hpp"
#include "mpi/entry/functions.hpp"
#include "mpi/entry/loaded.hpp"

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
  uint64_t first = 0;  // its code begins here
  uint64_t last = 0;  // its code ends before this address
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

// True for the files of an MPI's plugins and helper libraries. Fortran's bindings are not among them: they call the
// public functions for the program.
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

// If the MPI copies by process_vm_readv, asks libspinloom-heap.so to zero the lists of blocks that the MPI's code
// allocates: the MPI reads more of them than it has written (CHOICES.md).
void have_lists_zeroed(const Object& mpi) {
#define SPINLOOM_TEXT_OF(name) #name
#define SPINLOOM_NAME_OF(name) SPINLOOM_TEXT_OF(name)
  auto* const ask =
      reinterpret_cast<spinloom::ZeroedBlocks*>(dlsym(RTLD_DEFAULT, SPINLOOM_NAME_OF(SPINLOOM_ZEROED_BLOCKS)));
  if (ask == nullptr) return;
  bool copies_by_calls = false;
  for_each_loaded([&](const LoadedObject& object) {
    if (object.path != mpi.path) return false;
    for (uint32_t i = 0; i < object.count() && !copies_by_calls; ++i) {
      const ElfW(Sym) & symbol = object.symbols[i];
      copies_by_calls = !LoadedObject::is_defined(symbol) && object.name(symbol) == "process_vm_readv";
    }
    return true;
  });
  if (copies_by_calls) ask(reinterpret_cast<const void*>(mpi.first), mpi.last - mpi.first);
}

}  // namespace

Library& Library::of_process() {
  static auto* const library = new Library;  // calls come until the very end of the process
  return *library;
}

bool Library::find() {
  if (handle_ != nullptr) return true;
  const std::vector<Object> all = objects();
  const Object* found = nullptr;
  for (const Object& object : all) {
    if (object.path.empty() || holds(object, reinterpret_cast<const void*>(&objects))) continue;
    void* const handle = dlopen(object.path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* const init = dlsym(handle, "PMPI_Init");
    if (init != nullptr && holds(object, init)) {
      handle_ = handle;
      path_ = object.path;
      main_ = {object.first, object.last - object.first};
      found = &object;
      break;
    }
    dlclose(handle);
  }
  if (handle_ == nullptr) return false;
  if (dlsym(handle_, "ompi_mpi_comm_world") != nullptr) {
    abi_ = Abi::openmpi;
  } else {
    abi_ = file_of(path_).starts_with("libmpi_abi") ? Abi::standard : Abi::mpich;
    have_lists_zeroed(*found);
  }
  find_parts();
  return true;
}

void Library::find_parts() {
  parts_.clear();
  for (auto& place : outside_) place.store(0, std::memory_order_relaxed);
  bool is_program = true;  // the first object is the program
  for (const Object& object : objects()) {
    if (is_program) program_ = {object.first, object.last - object.first};
    is_program = false;
    if (is_mpis(file_of(object.path))) parts_.push_back({object.first, object.last - object.first});
  }
  std::ranges::sort(parts_, {}, &Span::first);
}

bool Library::contains_place(uint64_t place) const {
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

void* Library::tool_function(const std::string& name) const {
  void* const next = dlsym(RTLD_NEXT, name.c_str());
  if (next == nullptr) return nullptr;
  const auto place = reinterpret_cast<uint64_t>(next);
  return place - main_.first < main_.bytes ? nullptr : next;
}

// A program that is not position-independent has the MPI's data in copies of its own, which the global scope finds
// first.
void* Library::object(const char* name) const {
  void* const copy = dlsym(RTLD_DEFAULT, name);
  return copy != nullptr ? copy : dlsym(handle_, name);
}

std::string Library::unknown_receives() const {
  std::string unknown;
  for_each_loaded([&](const LoadedObject& object) {
    if (object.path != path_) return false;
    for (uint32_t i = 0; i < object.count(); ++i) {
      if (!LoadedObject::is_defined(object.symbols[i])) continue;
      const std::string_view name = object.name(object.symbols[i]);
      if (is_receive(name) && !is_known(name)) unknown += (unknown.empty() ? "" : ", ") + std::string(name);
    }
    return true;
  });
  return unknown;
}

}  // namespace spinloom::mpi
