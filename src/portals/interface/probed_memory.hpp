// ProbedMemory - whether memory of this process is there, found out by system calls that touch it.
//
// Contract: see nic/portals/host_memory.hpp. A page counts as readable if the kernel can read a word of it, as writable
//   if the kernel can add 0 to a word of it, indivisibly: nothing changes, whoever else uses the word. Pages that have
//   no memory yet get some, as by an access. A call costs some tenths of a microsecond for each page.
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
