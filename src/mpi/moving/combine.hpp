// combine - changes elements by an operation of MPI, where a call of MPI_Reduce_local would take longer than the work:
// up to combine_bytes_max.
//
// Contract: combine() makes each of `count` elements at `into` what the operation makes of it and of its operand, bit
//   by bit as MPI_Reduce_local does, but for what is in a NaN. False: it does not know the type or the operation, and
//   has changed nothing. Addresses may be any; operands and elements are the same or do not overlap.
// Threads: pure. Time: none.
#pragma once

#include <portals4.h>

#include <cstdint>

namespace spinloom::mpi {

inline constexpr int64_t combine_bytes_max = 8 << 10;

// `op`: PTL_SUM and so on.
bool combine(int op, ptl_datatype_t type, const void* operands, void* into, int64_t count);

}  // namespace spinloom::mpi
