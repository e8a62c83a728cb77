// CMA - one copy from or to another process's memory by system calls (cross memory attach).
//
// Contract: read_by_cma() copies the `bytes` packed bytes at a place of the other process to the first bytes of a
//   message. write_by_cma() copies the message's bytes there; `word` tells the process from another one with its
//   number. Both return an Error if some bytes cannot be copied: then the content of the destination is unknown.
// Prices: a system call for every 512 blocks of either side, and a cost for each block of the other process
//   (memory/peer/kernel_copy.hpp).
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "memory/peer/kernel_copy.hpp"
#include "memory/peer/process.hpp"
#include "mpi/messages/message.hpp"

namespace spinloom::mpi {

struct RemotePlace {
  const layout::Blob* blob = nullptr;  // null: one run
  int64_t count = 0;
  uint64_t buffer = 0;  // an address of the other process
};

[[nodiscard]] Status read_by_cma(const peer::Process& from, const RemotePlace& place, const Message& into,
                                 int64_t bytes);
[[nodiscard]] Status write_by_cma(const peer::Process& to, const peer::KnownWord& word, const RemotePlace& place,
                                  const Message& from, int64_t bytes);

}  // namespace spinloom::mpi
