/* MPI exchange - how two ranks exchange what the two types of a row describe: they send the first and receive the second.
 *
 * Contract: refill() gives both memories the bytes that check() of a program starts from. exchange() sends to the other rank
 *   and receives from it at once. alltoallw_with() moves one block between this rank and `partner`, who may be itself.
 * Threads: one.
 */
#include "mpi_job.h"

static void refill(void) {
  fill(sides[0].memory, sides[0].true_extent, 0);
  fill(sides[1].memory, sides[1].true_extent, (uint64_t)1 << 40);
}

static void exchange(const void* out, int out_count, MPI_Datatype out_type, void* in, int in_count, MPI_Datatype in_type) {
  MPI_Request requests[2];
  MPI_Irecv(in, in_count, in_type, !rank, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out, out_count, out_type, !rank, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void exchange_layouts(void) {
  exchange(sides[0].memory - sides[0].true_lb, 1, sides[0].type, sides[1].memory - sides[1].true_lb, 1, sides[1].type);
}

static void alltoallw_with(int partner) {
  int const counts[2] = {partner == 0, partner == 1}, places[2] = {0, 0};
  MPI_Datatype const out[2] = {sides[0].type, sides[0].type}, in[2] = {sides[1].type, sides[1].type};
  MPI_Alltoallw(sides[0].memory - sides[0].true_lb, counts, places, out, sides[1].memory - sides[1].true_lb, counts,
                places, in, MPI_COMM_WORLD);
}
