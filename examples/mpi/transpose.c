/* Transposes an N x N matrix of complex doubles whose rows are spread over the ranks: a 2-D FFT does so between its halves.
 *
 * transpose N [TIMES]: by MPI_Alltoallw, each block of the matrix in one datatype that sends it by rows, and one that
 * receives it by columns; and by hand: a loop that packs, MPI_Alltoall, a loop that unpacks. Every number is checked each
 * time. The number of ranks must divide N. */
#include <complex.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef double complex number;

static int rank, ranks, n, rows; /* rows of the matrix, and of a rank */
static number *from, *to, *out, *in;
static MPI_Datatype block, transposed;

static void make_types(void) {
  MPI_Datatype column;
  MPI_Type_vector(rows, rows, n, MPI_C_DOUBLE_COMPLEX, &block);
  MPI_Type_vector(rows, 1, n, MPI_C_DOUBLE_COMPLEX, &column);
  MPI_Type_create_hvector(rows, 1, sizeof(number), column, &transposed);
  MPI_Type_commit(&block);
  MPI_Type_commit(&transposed);
  MPI_Type_free(&column);
}

static void by_types(void) {
  int counts[ranks], places[ranks];
  MPI_Datatype sent[ranks], received[ranks];
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1, places[i] = i * rows * (int)sizeof(number);
    sent[i] = block, received[i] = transposed;
  }
  MPI_Alltoallw(from, counts, places, sent, to, counts, places, received, MPI_COMM_WORLD);
}

static void by_hand(void) {
  size_t const each = (size_t)rows * rows;
  for (int peer = 0; peer < ranks; ++peer)
    for (int row = 0; row < rows; ++row)
      memcpy(out + peer * each + (size_t)row * rows, from + (size_t)row * n + peer * rows, rows * sizeof(number));
  MPI_Alltoall(out, (int)each, MPI_C_DOUBLE_COMPLEX, in, (int)each, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
  for (int peer = 0; peer < ranks; ++peer)
    for (int column = 0; column < rows; ++column)
      for (int row = 0; row < rows; ++row)
        to[(size_t)column * n + peer * rows + row] = in[peer * each + (size_t)row * rows + column];
}

static number value(int row, int column, int time) { return row * (double)n + column + time * I; }

static void fill(int time) {
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < n; ++column) {
      from[(size_t)row * n + column] = value(rank * rows + row, column, time);
      to[(size_t)row * n + column] = -1;
    }
}

static long wrong_ones(int time) {
  long wrong = 0;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < n; ++column)
      wrong += to[(size_t)row * n + column] != value(column, rank * rows + row, time);
  return wrong;
}

static int compare(void const *a, void const *b) {
  double const x = *(double const *)a, y = *(double const *)b;
  return (x > y) - (x < y);
}

/* The median of `times` transposes in microseconds, until the last rank is ready. */
static double timed(void (*transpose)(void), int times, long *wrong) {
  double us[times];
  for (int time = -1; time < times; ++time) {
    fill(time);
    MPI_Barrier(MPI_COMM_WORLD);
    double const begin = MPI_Wtime();
    transpose();
    MPI_Barrier(MPI_COMM_WORLD);
    if (time >= 0) us[time] = (MPI_Wtime() - begin) * 1e6;
    *wrong += wrong_ones(time);
  }
  qsort(us, times, sizeof *us, compare);
  return us[times / 2];
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  n = argc > 1 ? atoi(argv[1]) : 1024;
  int const times = argc > 2 ? atoi(argv[2]) : 21;
  if (n < ranks || n % ranks != 0 || times < 1) {
    if (rank == 0) fprintf(stderr, "transpose N [TIMES]: N must be a multiple of %d, the number of ranks\n", ranks);
    MPI_Finalize();
    return 2;
  }
  rows = n / ranks;
  size_t const bytes = (size_t)rows * n * sizeof(number);
  from = malloc(bytes), to = malloc(bytes), out = malloc(bytes), in = malloc(bytes);
  if (!from || !to || !out || !in) MPI_Abort(MPI_COMM_WORLD, 1);
  make_types();
  long wrong = 0, all = 0;
  double const with_types = timed(by_types, times, &wrong), packed = timed(by_hand, times, &wrong);
  MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%d x %d complex doubles on %d ranks: %ld wrong\n", n, n, ranks, all);
    printf("MPI_Alltoallw %.1f us, by hand %.1f us (medians of %d)\n", with_types, packed, times);
  }
  MPI_Type_free(&block), MPI_Type_free(&transposed);
  free(from), free(to), free(out), free(in);
  MPI_Finalize();
  return rank == 0 && all != 0;
}
