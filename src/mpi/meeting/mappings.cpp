#include "mpi/meeting/mappings.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace spinloom::mpi {
namespace {

using Mapping = SharedMappings::Mapping;

constexpr uint64_t device_of(uint64_t major, uint64_t minor) { return major << 32U | minor; }

// PROCMAP_QUERY of Linux 6.11, as <linux/fs.h> has it: it finds one mapping without a text of all of them.
struct ProcmapQuery {
  uint64_t size, query_flags, query_addr;
  uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
  uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
  uint64_t vma_name_addr, build_id_addr;
};
constexpr unsigned long procmap_query = _IOWR('f', 17, ProcmapQuery);
constexpr uint64_t readable = 1, writable = 2, shared = 8, or_next = 16, of_a_file = 32;

int open_maps() { return open("/proc/self/maps", O_RDONLY | O_CLOEXEC); }

// Finds the first shared mapping that ends behind an address. False: there is none.
bool query(int file, uint64_t address, Mapping& mapping) {
  ProcmapQuery query{};
  query.size = sizeof query;
  query.query_flags = readable | writable | shared | of_a_file | or_next;
  query.query_addr = address;
  if (file < 0 || ioctl(file, procmap_query, &query) != 0) return false;
  mapping = {
      query.vma_start, query.vma_end, {device_of(query.dev_major, query.dev_minor), query.inode, query.vma_offset}};
  return true;
}

// Calls visit(mapping) for every shared mapping, until it returns false.
template <class Visit>
void visit_text(Visit&& visit) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen("/proc/self/maps", "re"), &std::fclose);
  if (file == nullptr) return;
  char line[512];
  bool at_line_start = true;  // a path may be longer than the line
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    const bool is_line = at_line_start;
    at_line_start = false;
    for (const char* at = line; *at != 0; ++at) at_line_start = *at == '\n';
    if (!is_line) continue;
    Mapping mapping;
    char mode[5] = {};
    uint64_t major = 0;
    uint64_t minor = 0;
    constexpr int fields = 7;
    const int read =
        std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx64 ":%" SCNx64 " %" SCNu64, &mapping.first,
                    &mapping.last, mode, &mapping.place.offset, &major, &minor, &mapping.place.inode);
    mapping.place.device = device_of(major, minor);
    const bool is_shared = read == fields && mode[0] == 'r' && mode[1] == 'w' && mode[3] == 's';
    if (is_shared && mapping.place.inode != 0 && !visit(mapping)) return;
  }
}

}  // namespace

MapsBy maps_by() {
  static const MapsBy by = [] {
    ProcmapQuery any{};
    any.size = sizeof any;
    any.query_flags = or_next;
    const int file = open_maps();
    const bool answers = file >= 0 && ioctl(file, procmap_query, &any) == 0;
    if (file >= 0) close(file);
    return answers ? MapsBy::query : MapsBy::text;
  }();
  return by;
}

SharedPlace shared_place_of(uint64_t address, uint64_t bytes, MapsBy by) {
  Mapping found;
  const auto covers = [&](const Mapping& mapping) {
    return address >= mapping.first && address < mapping.last && bytes <= mapping.last - address;
  };
  if (by == MapsBy::query) {
    const int file = open_maps();
    const bool is_found = query(file, address, found);
    if (file >= 0) close(file);
    if (!is_found) return {};
  } else {
    visit_text([&](const Mapping& mapping) {
      if (covers(mapping)) found = mapping;
      return !covers(mapping);
    });
  }
  if (!covers(found) || found.place.inode == 0) return {};
  SharedPlace place = found.place;
  place.offset += address - found.first;
  return place;
}

SharedMappings::~SharedMappings() {
  if (file_ >= 0) close(file_);
}

bool SharedMappings::look_at_next() {
  const bool is_first = !is_begun_;
  is_begun_ = true;
  if (by_ == MapsBy::text) {
    if (!is_first) return false;
    visit_text([&](const Mapping& mapping) {
      mappings_.push_back(mapping);
      return true;
    });
    return true;
  }
  if (is_first) file_ = open_maps();
  const bool is_near = is_first && near_ != 0;
  Mapping next;
  if (!query(file_, is_near ? near_ : behind_, next)) return is_near;
  if (!is_near) behind_ = next.last;
  mappings_.push_back(next);
  return true;
}

std::byte* SharedMappings::find(const SharedPlace& place, uint64_t bytes) {
  if (place.inode == 0) return nullptr;
  size_t seen = 0;
  do {
    for (; seen < mappings_.size(); ++seen) {
      const Mapping& mapping = mappings_[seen];
      const uint64_t length = mapping.last - mapping.first;
      const uint64_t skipped = place.offset - mapping.place.offset;
      const bool holds = mapping.place.device == place.device && mapping.place.inode == place.inode &&
                         place.offset >= mapping.place.offset && skipped < length && bytes <= length - skipped;
      if (holds) return reinterpret_cast<std::byte*>(mapping.first + skipped);  // NOLINT: an address
    }
  } while (look_at_next());
  return nullptr;
}

}  // namespace spinloom::mpi
