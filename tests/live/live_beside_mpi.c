/* MPI and Portals in one process. argv[1] says in which order, one letter for each step: M MPI_Init, P PtlInit, s a
 * ring of MPI messages, x a ring of puts, m MPI_Finalize, p PtlFini. Every rank prints how many answers were right. */
#include <mpi.h>

#include "live_common.h"

static void ring_of_messages(void) {
  int rank, size, in = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 9, &in, 1, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  EXPECT((rank + size - 1) % size, in);
  if (ranks != 0) { /* the same job */
    EXPECT(my_rank, rank);
    EXPECT(ranks, size);
  }
}

int main(int argc, char** argv) {
  for (const char* step = argc > 1 ? argv[1] : "MPsxpm"; *step != 0; ++step) {
    switch (*step) {
      case 'M': MPI_Init(&argc, &argv); break;
      case 'P': begin(); break;
      case 's': ring_of_messages(); break;
      case 'x': ring_of_puts(); break;
      case 'm': MPI_Finalize(); break;
      case 'p':
        barrier();
        PtlNIFini(ni);
        PtlFini();
        break;
      default: return 3;
    }
  }
  printf("rank %u: %d answers\n", my_rank, answers);
  return wrong == 0 ? 0 : 1;
}
