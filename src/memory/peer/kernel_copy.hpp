// Kernel copies - the system copies bytes between the memory of this process and another's, by process_vm_readv and
// process_vm_writev.
//
// Contract: kernel_read() and kernel_write() copy the next `bytes` of both lists and move both cursors behind what was
//   copied. A system call takes up to 512 blocks of each side and 1 GiB; as many calls are made as are needed. One call
//   costs about a microsecond, plus 0.4 us for each block of the other process and hardly anything for a block of
//   ours. So neighbouring blocks of the other process are asked for as one block. When reading, blocks with a short
//   gap between them are asked for as one, too, and the bytes of the gap are thrown away.
// Invariants: (1) after a failure, the first Copied::bytes are copied; what the remaining bytes of the destination
//   hold is unknown; (2) only bytes of the right process count as read: it still had its number after the call; (3)
//   before each call that writes, the process still had its number, and the call writes `known` before everything
//   else, if it has an address. A process that got the number in between is hurt only if it has writable memory at
//   that address; (4) reading touches only pages of the other process on which one of the blocks lies.
// Threads: the owner of the Process. Time: bounded by the bytes; Process reads the clock.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "memory/peer/blocks.hpp"
#include "memory/peer/process.hpp"

namespace spinloom::peer {

// A word in another process's memory that keeps this value as long as the process lives.
struct KnownWord {
  uint64_t address = 0;  // 0: no word
  uint64_t value = 0;
};

struct CopyResult {
  uint64_t bytes = 0;
  Status status;
  [[nodiscard]] bool ok() const { return status.ok(); }
};

[[nodiscard]] CopyResult kernel_read(const Process& from, BlockCursor& theirs, BlockCursor& ours, uint64_t bytes);
[[nodiscard]] CopyResult kernel_write(const Process& to, const KnownWord& known, BlockCursor& theirs, BlockCursor& ours,
                                      uint64_t bytes);

}  // namespace spinloom::peer
