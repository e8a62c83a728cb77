// Kernel copies - bytes between this process's memory and another's, copied by the system: process_vm_readv and
// process_vm_writev.
//
// Contract: the next `bytes` of both lists are copied, and both cursors are behind what was. A call of the system
//   takes 512 blocks of each side; there are as many calls as it needs. The price of one: about a microsecond, 0.4 us
//   more for each block of the other process's, hardly anything for one of ours; so blocks of the other's that touch
//   each other are asked for as one, and so are those that a short gap parts, when they are read: what lies in the gap
//   is thrown away.
// Invariants: (1) after a failure, the first Copied::bytes are copied; what may be there of the others is unknown;
//   (2) what counts as read is that process's: it still had its number after the call; (3) before each call that
//   writes, it still had its number, and the call writes `known`, where that has an address, before everything else:
//   a process that has taken the number in between must have writable memory there to be hurt; (4) reading touches no
//   page of the other process on which there is none of its blocks.
// Threads: the owner of the Process. Time: bounded by the bytes; Process reads the clock.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "peer/blocks.hpp"
#include "peer/process.hpp"

namespace spinloom::peer {

// A word of another process's memory that is known to have, and to keep, this value.
struct Word {
  uint64_t address = 0;  // 0: there is none
  uint64_t value = 0;
};

struct Copied {
  uint64_t bytes = 0;
  Status status;
  [[nodiscard]] bool ok() const { return status.ok(); }
};

[[nodiscard]] Copied kernel_read(const Process& from, BlockCursor& theirs, BlockCursor& ours, uint64_t bytes);
[[nodiscard]] Copied kernel_write(const Process& to, const Word& known, BlockCursor& theirs, BlockCursor& ours,
                                  uint64_t bytes);

}  // namespace spinloom::peer
