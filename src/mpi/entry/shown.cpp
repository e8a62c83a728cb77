#include "mpi/entry/shown.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <string_view>

#include "mpi/entry/loaded.hpp"

namespace spinloom::mpi {
namespace {

constexpr size_t symbols_max = 4096;
using Marks = std::bitset<symbols_max>;  // a bit for each symbol of our table

std::atomic<bool> is_settled{false};  // true once an MPI was found and our names were taken out
std::atomic<uint64_t> loads_seen{0};  // load_count() at the last look
std::atomic_flag is_settling = ATOMIC_FLAG_INIT;

bool is_ours(const LoadedObject& object) { return object.holds(&is_settled); }

bool is_of_mpi(std::string_view name) { return name.starts_with("MPI_") || name.starts_with("PMPI_"); }

LoadedObject own_object() {
  LoadedObject found;
  for_each_loaded([&](const LoadedObject& object) {
    if (!is_ours(object)) return false;
    found = object;
    return true;
  });
  return found;
}

bool find_mpi(LoadedObject& mpi) {
  bool found = false;
  for_each_loaded([&](const LoadedObject& object) {
    if (is_ours(object) || object.find("PMPI_Init") == nullptr) return false;
    mpi = object;
    return found = true;
  });
  return found;
}

bool is_defined_elsewhere(std::string_view name) {
  bool found = false;
  for_each_loaded([&](const LoadedObject& object) { return found = !is_ours(object) && object.find(name) != nullptr; });
  return found;
}

// Marks those of our names that the process would not find without us.
Marks names_of_ours_alone(const LoadedObject& ours, const LoadedObject& mpi) {
  Marks marks;
  const uint32_t count = std::min<uint32_t>(ours.count(), symbols_max);
  for (uint32_t i = 0; i < count; ++i) {
    if (!LoadedObject::is_defined(ours.symbols[i])) continue;
    const std::string_view name = ours.name(ours.symbols[i]);
    marks[i] = is_of_mpi(name) && mpi.find(name) == nullptr && !is_defined_elsewhere(name);
  }
  return marks;
}

// Writes null to a word whose page the loader may have made read-only. The page is made read-only again only at the
// process's start: later the loader may be about to write there itself.
void write_null(const LoadedObject& object, void** word, Moment moment) {
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t page = reinterpret_cast<uint64_t>(word) / page_bytes * page_bytes;
  const bool is_protected = std::ranges::any_of(object.segments, [&](const ElfW(Phdr) & part) {
    const uint64_t first = (object.base + part.p_vaddr) / page_bytes * page_bytes;
    const uint64_t last = (object.base + part.p_vaddr + part.p_memsz) / page_bytes * page_bytes;
    return part.p_type == PT_GNU_RELRO && page >= first && page < last;
  });
  auto* const start = reinterpret_cast<void*>(page);  // NOLINT: an address
  if (is_protected && mprotect(start, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  __atomic_store_n(word, nullptr, __ATOMIC_RELAXED);
  if (is_protected && moment == Moment::start) mprotect(start, page_bytes, PROT_READ);
}

// Makes the weak references null that are bound to our definitions of marked names.
void unbind(const LoadedObject& ours, const Marks& marks, Moment moment) {
  for_each_loaded([&](const LoadedObject& object) {
    if (object.hash == nullptr || is_ours(object)) return false;
    for (const auto& list : {object.relocations, object.calls}) {
      for (const ElfW(Rela) & entry : list) {
        const uint64_t number = ELF64_R_SYM(entry.r_info);
        if (number == 0) continue;
        const ElfW(Sym) & wanted = object.symbols[number];
        if (wanted.st_shndx != SHN_UNDEF || ELF64_ST_BIND(wanted.st_info) != STB_WEAK) continue;
        const std::string_view name = object.name(wanted);
        const ElfW(Sym)* const symbol = is_of_mpi(name) ? ours.find(name) : nullptr;
        if (symbol == nullptr || !marks[static_cast<size_t>(symbol - ours.symbols)]) continue;
        auto** const word = reinterpret_cast<void**>(object.base + entry.r_offset);  // NOLINT: an address
        if (*word == ours.address_of(*symbol)) write_null(object, word, moment);
      }
    }
    return false;
  });
}

// Takes the marked names out of our symbol table, which lies in a read-only part: the loader does not find a symbol
// whose value is 0.
void take_out(const LoadedObject& ours, const Marks& marks) {
  const auto page_bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uint64_t>(ours.symbols) / page_bytes * page_bytes;
  const auto end = reinterpret_cast<uint64_t>(ours.symbols + ours.count());
  int allowed = 0;
  for (const ElfW(Phdr) & part : ours.segments) {
    if (part.p_type != PT_LOAD || end - ours.base - part.p_vaddr > part.p_memsz) continue;
    allowed = ((part.p_flags & PF_R) != 0 ? PROT_READ : 0) | ((part.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
              ((part.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
  }
  auto* const start = reinterpret_cast<void*>(first);  // NOLINT: an address
  if (allowed == 0 || mprotect(start, end - first, allowed | PROT_WRITE) != 0) return;
  auto* const symbols = const_cast<ElfW(Sym)*>(ours.symbols);
  for (uint32_t i = 0; i < std::min<uint32_t>(ours.count(), symbols_max); ++i) {
    if (marks[i]) __atomic_store_n(&symbols[i].st_value, 0, __ATOMIC_RELAXED);
  }
  mprotect(start, end - first, allowed);
}

void settle(Moment moment) {
  const uint64_t loaded = load_count();
  if (moment == Moment::later && loaded == loads_seen.load(std::memory_order_relaxed)) return;
  loads_seen.store(loaded, std::memory_order_relaxed);
  LoadedObject mpi;
  const bool has_mpi = find_mpi(mpi);
  if (!has_mpi && moment == Moment::later) return;
  const LoadedObject ours = own_object();
  if (ours.hash == nullptr) return;
  const Marks marks = names_of_ours_alone(ours, mpi);
  unbind(ours, marks, moment);
  if (!has_mpi) return;
  take_out(ours, marks);
  is_settled.store(true, std::memory_order_release);
}

}  // namespace

void settle_shown(Moment moment) {
  if (is_settled.load(std::memory_order_acquire) || is_settling.test_and_set(std::memory_order_acquire)) return;
  settle(moment);
  is_settling.clear(std::memory_order_release);
}

bool is_ours_alone(const char* name) {
  if (is_settled.load(std::memory_order_acquire) || name == nullptr || !is_of_mpi(name)) return false;
  LoadedObject mpi;
  return !find_mpi(mpi) && own_object().find(name) != nullptr && !is_defined_elsewhere(name);
}

void* dlsym_behind() {
  static std::atomic<void*> cached{nullptr};
  void* found = cached.load(std::memory_order_relaxed);
  if (found != nullptr) return found;
  bool is_behind = false;
  for_each_loaded([&](const LoadedObject& object) {
    if (is_ours(object)) return (is_behind = true, false);
    const ElfW(Sym)* const symbol = is_behind ? object.find("dlsym") : nullptr;
    if (symbol != nullptr) found = object.address_of(*symbol);
    return found != nullptr;
  });
  cached.store(found, std::memory_order_relaxed);
  return found;
}

}  // namespace spinloom::mpi
