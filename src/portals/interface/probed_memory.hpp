// ProbedMemory - finds out by system calls whether memory of this process is there.
//
// Contract: see nic/portals/host_memory.hpp. A page counts as readable if the kernel can read a word of it, as writable
//   if the kernel can add 0 to a word of it, indivisibly: the value stays, even if others change the word. Pages that
//   have no memory yet get some, as by an access. A call costs some tenths of a microsecond for each page; a range over
//   more than 16 pages is first tried by one madvise() for all of them.
// Threads: any. Time: none.
#pragma once

#include "nic/portals/host_memory.hpp"

namespace spinloom::portals {

class ProbedMemory final : public nic::HostMemory {
 public:
  using HostMemory::reaches;
  [[nodiscard]] bool reaches(const void* start, uint64_t length, nic::Access access) override;
};

}  // namespace spinloom::portals
