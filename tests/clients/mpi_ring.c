/* A token that goes round and grows, and shifts of the ring with bytes of many lengths, blocking and not. */
#include "mpi_common.h"

enum { laps = 50 };

static void token(void) {
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  long long sum = 0;
  for (int lap = 0; lap < laps; ++lap) {
    if (rank == 0) {
      MPI_Send(&sum, 1, MPI_LONG_LONG, next, lap, MPI_COMM_WORLD);
      MPI_Recv(&sum, 1, MPI_LONG_LONG, before, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      EXPECT((long long)(lap + 1) * ranks * (ranks - 1) / 2, sum);
    } else {
      MPI_Recv(&sum, 1, MPI_LONG_LONG, before, lap, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      sum += rank;
      MPI_Send(&sum, 1, MPI_LONG_LONG, next, lap, MPI_COMM_WORLD);
    }
  }
}

static void shift(int bytes, int by) {
  const int to = (rank + by) % ranks, from = (rank + ranks - by) % ranks;
  unsigned char* out = memory((uint64_t)bytes);
  unsigned char* in = memory((uint64_t)bytes);
  MPI_Status status;
  int count = -1;
  fill(out, (uint64_t)(rank * 100 + by), (uint64_t)bytes);
  MPI_Sendrecv(out, bytes, MPI_BYTE, to, by, in, bytes, MPI_BYTE, from, by, MPI_COMM_WORLD, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  EXPECT(bytes, count);
  EXPECT(from, status.MPI_SOURCE);
  EXPECT_BYTES(in, (uint64_t)(from * 100 + by), (uint64_t)bytes);

  memset(in, 0, (size_t)bytes);
  MPI_Request both[2];
  MPI_Irecv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, by, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(out, bytes, MPI_BYTE, to, by, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  EXPECT_BYTES(in, (uint64_t)(from * 100 + by), (uint64_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD); /* MPI_ANY_SOURCE takes no message of the next shift */
  free(out);
  free(in);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  token();
  const int lengths[] = {0, 1, 7, 8, 100, 2047, 2048, 2049, 8191, 16384, 65536, 65537, 1 << 20};
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    for (int by = 0; by < ranks; ++by) shift(lengths[i], by); /* a shift by 0 goes to itself */
  }
  return end();
}
