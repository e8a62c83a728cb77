/* A 2-D Fourier transform of an N x N matrix by rows: transform, transpose by MPI_Alltoallw with datatypes, transform,
 * transpose back.
 *
 *   fft2d [N [times]]    a power of two that the number of ranks divides */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

static number* roots; /* roots of unity: exp(-2 pi i k / N), k < N / 2 */

static void transform(number* row, int n) {
  for (int i = 1, j = 0; i < n; ++i) {
    int bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) {
      const number kept = row[i];
      row[i] = row[j];
      row[j] = kept;
    }
  }
  for (int half = 1; half < n; half *= 2) {
    for (int first = 0; first < n; first += 2 * half) {
      for (int k = 0; k < half; ++k) {
        const number odd = row[first + k + half] * roots[(size_t)k * (n / (2 * half))];
        row[first + k + half] = row[first + k] - odd;
        row[first + k] += odd;
      }
    }
  }
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int n = argc > 1 ? atoi(argv[1]) : 1024;
  const int times = argc > 2 ? atoi(argv[2]) : 5;
  const int rows = n / ranks;
  MPI_Datatype block, column, transposed;
  MPI_Type_vector(rows, rows, n, MPI_C_DOUBLE_COMPLEX, &block);
  MPI_Type_vector(rows, 1, n, MPI_C_DOUBLE_COMPLEX, &column);
  MPI_Type_create_hvector(rows, 1, sizeof(number), column, &transposed);
  MPI_Type_commit(&block);
  MPI_Type_commit(&transposed);
  int* const counts = malloc(ranks * sizeof(int));
  int* const places = malloc(ranks * sizeof(int));
  MPI_Datatype* const sent = malloc(ranks * sizeof(MPI_Datatype));
  MPI_Datatype* const received = malloc(ranks * sizeof(MPI_Datatype));
  for (int i = 0; i < ranks; ++i) {
    counts[i] = 1;
    places[i] = i * rows * (int)sizeof(number);
    sent[i] = block;
    received[i] = transposed;
  }
  number* from = malloc((size_t)rows * n * sizeof(number));
  number* into = malloc((size_t)rows * n * sizeof(number));
  roots = malloc(n / 2 * sizeof(number));
  for (int k = 0; k < n / 2; ++k) roots[k] = cexp(-2 * acos(-1) * I * k / n);
  for (int i = 0; i < rows * n; ++i) from[i] = (rank * rows * n + i) % 13;
  for (int time = 0; time < times; ++time) {
    for (int half = 0; half < 2; ++half) {
      for (int row = 0; row < rows; ++row) transform(from + (size_t)row * n, n);
      MPI_Alltoallw(from, counts, places, sent, into, counts, places, received, MPI_COMM_WORLD);
      number* const swapped = from;
      from = into;
      into = swapped;
    }
  }
  double sum = 0, all = 0;
  for (int i = 0; i < rows * n; ++i) sum += cabs(from[i]);
  MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("sum %.6g\n", all);
  MPI_Type_free(&column);
  MPI_Type_free(&block);
  MPI_Type_free(&transposed);
  MPI_Finalize();
  return 0;
}
