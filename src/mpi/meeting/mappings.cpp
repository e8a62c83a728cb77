#include "mpi/meeting/mappings.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace spinloom::mpi {
namespace {

struct Mapping {
  uint64_t first = 0;
  uint64_t last = 0;
  SharedPlace place;
};

// Returns the first shared mapping of a process (0: this one) for which `fits` is true; its inode is 0 if there is
// none.
template <class Fits>
Mapping find(int64_t process, Fits&& fits) {
  const std::string name = process == 0 ? "/proc/self/maps" : text("/proc/", process, "/maps");
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(name.c_str(), "re"), &std::fclose);
  if (file == nullptr) return {};
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
    constexpr unsigned major_shift = 32;
    mapping.place.device = major << major_shift | minor;
    const bool is_shared = read == fields && mode[0] == 'r' && mode[1] == 'w' && mode[3] == 's';
    if (is_shared && mapping.place.inode != 0 && fits(mapping)) return mapping;
  }
  return {};
}

}  // namespace

SharedPlace shared_place_of(uint64_t address, uint64_t bytes, int64_t process) {
  const Mapping found = find(process, [&](const Mapping& mapping) {
    return address >= mapping.first && address < mapping.last && bytes <= mapping.last - address;
  });
  SharedPlace place = found.place;
  place.offset += address - found.first;
  return place.inode == 0 ? SharedPlace{} : place;
}

std::byte* mapped_here(const SharedPlace& place, uint64_t bytes) {
  if (place.inode == 0) return nullptr;
  const Mapping found = find(0, [&](const Mapping& mapping) {
    const uint64_t length = mapping.last - mapping.first;
    const uint64_t skipped = place.offset - mapping.place.offset;
    return mapping.place.device == place.device && mapping.place.inode == place.inode &&
           place.offset >= mapping.place.offset && skipped < length && bytes <= length - skipped;
  });
  if (found.place.inode == 0) return nullptr;
  return reinterpret_cast<std::byte*>(found.first + (place.offset - found.place.offset));  // NOLINT: an address
}

}  // namespace spinloom::mpi
