// CMA - one copy out of another process's memory by system calls (cross memory attach).
//
// Contract: read_by_cma() copies the `bytes` packed bytes that `blob` and `count` describe at `buffer`, an address of the
//   other process, to the first bytes of a message. Without a blob they are one run. An Error if some of them cannot be
//   read: then what the message's place holds is unknown.
// Prices: a call for every 512 blocks of either side, and each block of the other process (peer/kernel_copy.hpp).
// Threads: pure. Time: none.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "layout/blob.hpp"
#include "mpi/message.hpp"
#include "peer/process.hpp"

namespace spinloom::mpi {

[[nodiscard]] Status read_by_cma(const peer::Process& from, const layout::Blob* blob, int64_t count, uint64_t buffer,
                                 const Message& into, int64_t bytes);

}  // namespace spinloom::mpi
