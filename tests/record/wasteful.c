/* Messages with what is wrong or wasted in each: test_record_more.py says what must be found. Two ranks. */
#include <mpi.h>

enum { N = 16 };
static double grid[N][N];

int main(int argc, char** argv) {
  int rank;
  MPI_Datatype rows, corner;
  MPI_Request requests[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Type_vector(2, N, N, MPI_DOUBLE, &rows);       /* two rows */
  MPI_Type_vector(4, 4, N, MPI_DOUBLE, &corner);     /* 4 x 4 elements */
  MPI_Type_commit(&rows);
  MPI_Type_commit(&corner);
  for (int i = 0; i < 3; ++i) {
    /* A halo that sends the corner's upper half with the rows, too: 2 rows of 4 doubles twice, 64 bytes. */
    MPI_Irecv(&grid[8][0], 2 * N, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&grid[12][0], 16, MPI_DOUBLE, 1 - rank, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&grid[0][0], 1, rows, 1 - rank, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(&grid[0][0], 1, corner, 1 - rank, 2, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  }
  if (rank == 0) {
    int numbers[4] = {0};
    MPI_Send(numbers, 4, MPI_INT, 1, 3, MPI_COMM_WORLD); /* received as floats */
    MPI_Send(numbers, 2, MPI_INT, 1, 4, MPI_COMM_WORLD); /* the room is for 8 */
    MPI_Send(numbers, 1, MPI_INT, 1, 5, MPI_COMM_WORLD); /* nobody receives this */
  } else {
    float floats[4];
    int numbers[8];
    MPI_Recv(floats, 4, MPI_FLOAT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(numbers, 8, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Type_free(&rows);
  MPI_Type_free(&corner);
  MPI_Finalize();
  return 0;
}
