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
  bool begins = true;  // a path may be longer than the line
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    const bool is_line = begins;
    begins = false;
    for (const char* at = line; *at != 0; ++at) begins = *at == '\n';
    if (!is_line) continue;
    Mapping found;
    char mode[5] = {};
    uint64_t major = 0;
    uint64_t minor = 0;
    constexpr int fields = 7;
    const int read =
        std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx64 ":%" SCNx64 " %" SCNu64, &found.first,
                    &found.last, mode, &found.place.offset, &major, &minor, &found.place.inode);
    constexpr unsigned major_shift = 32;
    found.place.device = major << major_shift | minor;
    const bool is_shared = read == fields && mode[0] == 'r' && mode[1] == 'w' && mode[3] == 's';
    if (is_shared && found.place.inode != 0 && fits(found)) return found;
  }
  return {};
}

}  // namespace

SharedPlace shared_place_of(uint64_t address, uint64_t bytes, int64_t process) {
  const Mapping found = find(process, [&](const Mapping& one) {
    return address >= one.first && address < one.last && bytes <= one.last - address;
  });
  SharedPlace place = found.place;
  place.offset += address - found.first;
  return place.inode == 0 ? SharedPlace{} : place;
}

std::byte* mapped_here(const SharedPlace& place, uint64_t bytes) {
  if (place.inode == 0) return nullptr;
  const Mapping found = find(0, [&](const Mapping& one) {
    const uint64_t length = one.last - one.first;
    const uint64_t skipped = place.offset - one.place.offset;
    return one.place.device == place.device && one.place.inode == place.inode && place.offset >= one.place.offset &&
           skipped < length && bytes <= length - skipped;
  });
  if (found.place.inode == 0) return nullptr;
  return reinterpret_cast<std::byte*>(found.first + (place.offset - found.place.offset));  // NOLINT: an address
}

}  // namespace spinloom::mpi
