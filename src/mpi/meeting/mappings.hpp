// Mappings - finds memory that several processes have mapped from one file, by its place in that file.
//
// Contract: shared_place_of() returns the file and the offset in it of the bytes at an address, if a process (0: this
//   one) has one shared mapping over all of them. mapped_here() returns the address in this process of the bytes at
//   such a place, or null. A place is the same for all processes of a machine.
// Invariants: (1) only shared mappings that can be read and written count. Threads: any. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinloom::mpi {

struct SharedPlace {
  uint64_t device = 0;
  uint64_t inode = 0;  // 0: no such place
  uint64_t offset = 0;
};

[[nodiscard]] SharedPlace shared_place_of(uint64_t address, uint64_t bytes, int64_t process = 0);
[[nodiscard]] std::byte* mapped_here(const SharedPlace& place, uint64_t bytes);

}  // namespace spinloom::mpi
