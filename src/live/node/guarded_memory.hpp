// GuardedMemory - whether memory of this process is there, found out by touching it.
//
// Contract: see nic/portals/host_memory.hpp. reaches() touches one byte of each page and catches the fault of a page
//   that is not there, which costs some nanoseconds. Reading loads the byte; writing replaces it indivisibly by what it
//   is. The first use installs handlers of SIGSEGV and SIGBUS. Faults that are not ours go to the handlers that were
//   there before, with the same effect as if ours did not exist.
// Invariants: (1) where the program has replaced our handlers, or the calling thread blocks these signals, system calls
//   find out whether memory is there (ProbedMemory). A thread notices such a change after at most `look_every` of its
//   calls.
// Threads: any; one object is used by one thread at a time. Time: none.
#pragma once

#include "nic/portals/host_memory.hpp"
#include "portals/interface/probed_memory.hpp"

namespace spinloom::live {

class GuardedMemory final : public nic::HostMemory {
 public:
  static constexpr uint32_t look_every = 256;

  using HostMemory::reaches;
  [[nodiscard]] bool reaches(const void* start, uint64_t length, nic::Access access) override;
  // True if this thread's calls touch memory themselves, false if they ask the system; for tests.
  [[nodiscard]] static bool touches();

 private:
  portals::ProbedMemory probed_;
};

}  // namespace spinloom::live
