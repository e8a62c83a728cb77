// Mappings - finds memory that several processes have mapped from one file, by its place in that file.
//
// Contract: shared_place_of() returns the file and the offset in it of the bytes at an address of this process, if one
//   shared mapping covers all of them. SharedMappings are those of this process; find() returns the address here of the
//   bytes at such a place, or null. A place is the same for all processes of a machine, so a rank tells others its own,
//   and nobody reads another process's mappings.
// Invariants: (1) only shared mappings of files count that can be read and written; (2) SharedMappings are looked at
//   when they are first needed, each once, so that an object is good for a moment only.
// Threads: any; one for a SharedMappings. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace spinloom::mpi {

struct SharedPlace {
  uint64_t device = 0;
  uint64_t inode = 0;  // 0: no such place
  uint64_t offset = 0;
};

// Mappings are found by a query of the system (Linux 6.11), or in the text that it writes of all of them.
enum class MapsBy : uint8_t { query, text };
[[nodiscard]] MapsBy maps_by();  // the query, where the system has it

[[nodiscard]] SharedPlace shared_place_of(uint64_t address, uint64_t bytes, MapsBy by = maps_by());

class SharedMappings {
 public:
  // The mapping of the address `near` is looked at first: an MPI often has the memory of all ranks in one.
  explicit SharedMappings(uint64_t near = 0, MapsBy by = maps_by()) : near_(near), by_(by) {}
  SharedMappings(const SharedMappings&) = delete;
  SharedMappings& operator=(const SharedMappings&) = delete;
  ~SharedMappings();
  [[nodiscard]] std::byte* find(const SharedPlace& place, uint64_t bytes);

  struct Mapping {
    uint64_t first = 0;
    uint64_t last = 0;
    SharedPlace place;
  };

 private:
  [[nodiscard]] bool look_at_next();

  uint64_t near_;
  MapsBy by_;
  int file_ = -1;
  bool is_begun_ = false;
  uint64_t behind_ = 0;  // the end of the mapping that was looked at last
  std::vector<Mapping> mappings_;  // those that were looked at so far
};

}  // namespace spinloom::mpi
