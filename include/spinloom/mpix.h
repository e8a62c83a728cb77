// Spinloom's additions to MPI: a datatype is made known to its peers before its first message.
//
// Contract: MPIX_Type_commit_comm() commits `*type` (MPI_Type_commit) and, where the ranks of `comm` are on one machine
//   and have the layer, hands each the type's layout, so that no message waits for it. Collective: every rank of `comm`
//   calls it, each with its own type. On an intercommunicator, and where the layer is off, it commits only.
//   MPIX_Type_free_comm() frees `*type` (MPI_Type_free) and sets it to MPI_DATATYPE_NULL; peers drop the layout when
//   they need its place. Collective by its name; it waits for nobody. A type may be freed by MPI_Type_free as well.
//   Both return MPI_SUCCESS or an error of MPI, which goes to the error handler first.
// Fortran: call MPIX_Type_commit_comm(type, comm, ierror), the same for the other, with handles of mpif.h, `use mpi` or
//   `use mpi_f08`; they are external procedures, and ierror is not optional.
// Linking: mpicc app.c $(pkg-config --cflags --libs spinloom-mpi). Source: FALCON-X, section 6.2.
// Threads: as the MPI grants.
#ifndef SPINLOOM_MPIX_H
#define SPINLOOM_MPIX_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

int MPIX_Type_commit_comm(MPI_Datatype *type, MPI_Comm comm);
int MPIX_Type_free_comm(MPI_Datatype *type, MPI_Comm comm);

#ifdef __cplusplus
}
#endif

#endif
