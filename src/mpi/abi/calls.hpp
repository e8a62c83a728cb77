// Calls - the layer's functions in place of calls of MPI, in one binary interface.
//
// Contract: each has the prototype of MPI_X, or of MPI_X_c where N is Count, and keeps its meaning. Calls that the
//   layer leaves to the MPI are declared here, too, but not defined.
// Threads: as the MPI grants. Time: none.
#pragma once

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

#define SPINLOOM_DECLARE(name, parameters) int name parameters;
#define SPINLOOM_DECLARE_COUNTED(name, M, parameters) \
  template <class M>                                  \
  int name parameters;
SPINLOOM_REAL_CALLS(SPINLOOM_DECLARE)
SPINLOOM_NEWER_CALLS(SPINLOOM_DECLARE)
SPINLOOM_COMM_CALLS(SPINLOOM_DECLARE)
SPINLOOM_COUNTED_CALLS(SPINLOOM_DECLARE_COUNTED, N)
SPINLOOM_COUNTED_NEWER_CALLS(SPINLOOM_DECLARE_COUNTED, N)
SPINLOOM_EPOCH_CALLS(SPINLOOM_DECLARE)
SPINLOOM_WINDOW_CALLS(SPINLOOM_DECLARE_COUNTED, N)
#undef SPINLOOM_DECLARE
#undef SPINLOOM_DECLARE_COUNTED
#define SPINLOOM_DECLARE(name, iname, M, ...) \
  template <class M>                          \
  int name(__VA_ARGS__);                      \
  template <class M>                          \
  int iname(__VA_ARGS__, Request*);           \
  template <class M>                          \
  int name##_init(__VA_ARGS__, Info, Request*);
SPINLOOM_COLLECTIVE_CALLS(SPINLOOM_DECLARE, N)
#undef SPINLOOM_DECLARE

// Calls that no MPI has (include/spinloom/mpix.h).
int Type_commit_comm(Datatype* type, Comm comm);
int Type_free_comm(Datatype* type, Comm comm);
// Their forms for Fortran: handles are Fortran's integers, and the error code is the last argument.
void Type_commit_comm_fortran(int* type, const int* comm, int* code);
void Type_free_comm_fortran(int* type, const int* comm, int* code);

// Steps that calls share. incoming() attends to what has arrived, and returns the memory that a call names.
template <class N>
Place incoming(const void* buffer, N count, Datatype type, Comm comm) {
  const Lock lock;
  layer.attend();
  return layer.place_of(buffer, count, type, comm);
}
// True if a message that such a receive would get has been claimed (layer.hpp).
inline bool has_claim(int source, int tag, Comm comm) {
  const Lock lock;
  return !layer.claims.empty() && layer.find_claim(source, tag, comm) != nullptr;
}
// Receives a message into `place`, from a claim if there is one, and waits for it.
template <class N>
int receive(const Place& place, int source, int tag, Status* status);

}  // namespace spinloom::mpi::SPINLOOM_ABI
