/* Wrong arguments to collective calls on which the layer has agreed: every rank gives the same wrong ones.
 * Rank 0 writes the class of each call's error; after them a right call must still be right. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { rows = 4096, ranks_max = 8 };

static int rank, size, ones[ranks_max], twos[ranks_max], less[ranks_max], places[ranks_max];
static MPI_Datatype column, types[ranks_max], nulls[ranks_max];
static double *out, *in;

static void tell(char const* what, int code) {
  int class = 0;
  MPI_Error_class(code, &class);
  if (rank == 0) printf("%s: %d\n", what, class);
}

static void right(int number) {
  for (int i = 0; i < 2 * rows * size; ++i) out[i] = rank * 1000 + number, in[i] = -1;
  if (MPI_Alltoallw(out, ones, places, types, in, ones, places, types, MPI_COMM_WORLD) != MPI_SUCCESS) exit(4);
  for (int i = 0; i < 2 * rows * size; ++i)
    if (in[i] != (i % 2 == 0 ? i / (2 * rows) * 1000 + number : -1)) exit(5);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Datatype vector;
  MPI_Type_vector(rows, 1, 2, MPI_DOUBLE, &vector);
  MPI_Type_create_resized(vector, 0, 2 * rows * (MPI_Aint)sizeof(double), &column);
  MPI_Type_commit(&column);
  out = malloc(sizeof *out * 2 * rows * (size_t)size), in = malloc(sizeof *in * 2 * rows * (size_t)size);
  for (int i = 0; i < size; ++i) {
    ones[i] = 1, twos[i] = i, less[i] = -1, types[i] = column, nulls[i] = MPI_DATATYPE_NULL;
    places[i] = i * 2 * rows * (int)sizeof(double);
  }
  for (int i = 0; i < 4; ++i) {
    right(i);
    MPI_Alltoallv(out, ones, twos, column, in, ones, twos, column, MPI_COMM_WORLD);
    MPI_Alltoall(out, 1, column, in, 1, column, MPI_COMM_WORLD);
    MPI_Allgatherv(out, 1, column, in, ones, twos, column, MPI_COMM_WORLD);
    MPI_Gatherv(out, 1, column, in, ones, twos, column, 0, MPI_COMM_WORLD);
    MPI_Bcast(out, 1, column, 0, MPI_COMM_WORLD);
  }
#define TELL(call) tell(#call, call)
  TELL(MPI_Alltoallw(out, less, places, types, in, ones, places, types, MPI_COMM_WORLD));
  TELL(MPI_Alltoallw(out, ones, places, types, in, less, places, types, MPI_COMM_WORLD));
  TELL(MPI_Alltoallw(out, ones, places, nulls, in, ones, places, types, MPI_COMM_WORLD));
  TELL(MPI_Alltoallw(out, ones, places, types, in, ones, places, nulls, MPI_COMM_WORLD));
  TELL(MPI_Alltoallv(out, less, twos, column, in, ones, twos, column, MPI_COMM_WORLD));
  TELL(MPI_Alltoallv(out, ones, twos, MPI_DATATYPE_NULL, in, ones, twos, column, MPI_COMM_WORLD));
  TELL(MPI_Alltoall(out, -1, column, in, 1, column, MPI_COMM_WORLD));
  TELL(MPI_Alltoall(out, 1, column, in, -1, column, MPI_COMM_WORLD));
  TELL(MPI_Alltoall(out, 1, MPI_DATATYPE_NULL, in, 1, column, MPI_COMM_WORLD));
  TELL(MPI_Allgatherv(out, -1, column, in, ones, twos, column, MPI_COMM_WORLD));
#ifndef OPEN_MPI /* 4.1.4 copies as many as it is told */
  TELL(MPI_Allgatherv(out, 1, column, in, less, twos, column, MPI_COMM_WORLD));
#endif
  TELL(MPI_Gatherv(out, -1, column, in, ones, twos, column, 0, MPI_COMM_WORLD));
  TELL(MPI_Gatherv(out, 1, column, in, ones, twos, column, size, MPI_COMM_WORLD));
  TELL(MPI_Bcast(out, -1, column, 0, MPI_COMM_WORLD));
  TELL(MPI_Bcast(out, 1, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD));
  TELL(MPI_Bcast(out, 1, column, -3, MPI_COMM_WORLD));
  MPI_Request request = MPI_REQUEST_NULL;
  TELL(MPI_Ialltoallw(out, less, places, types, in, ones, places, types, MPI_COMM_WORLD, &request));
  request = MPI_REQUEST_NULL;
  TELL(MPI_Ialltoallw(out, ones, places, nulls, in, ones, places, types, MPI_COMM_WORLD, &request));
  right(9);
  if (rank == 0) printf("right again\n");
  MPI_Finalize();
}
