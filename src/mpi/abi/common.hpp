// Types that the binary interfaces of MPI share: each interface has the same things under other numbers.
#pragma once

#include <portals4.h>

namespace spinloom::mpi {

// Values of MPI_COMBINER_*, MPI_ORDER_C and MPI_DISTRIBUTE_*.
struct Combiners {
  int named, dup, contiguous, vector, hvector, indexed, hindexed, indexed_block, hindexed_block, structure, subarray,
      darray, resized;
  int f90_first, f90_last;  // MPI_COMBINER_F90_REAL, _COMPLEX and _INTEGER follow each other
  int order_c;
  int distribute_block, distribute_cyclic, distribute_none, distribute_default;
};

template <class Comm, class Datatype, class MessageHandle, class Request, class Errhandler>
struct PredefinedHandles {
  Comm comm_null, comm_world, comm_self;
  Request request_null;
  MessageHandle message_null, message_no_proc;
  Datatype type_null, byte, packed;
  Errhandler errors_return;
};

// A predefined operation or datatype, and its code in Portals' atomics.
template <class Handle, class Code>
struct Arithmetic {
  Handle handle;
  Code code;
};

}  // namespace spinloom::mpi
