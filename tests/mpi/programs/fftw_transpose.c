// Transposes with FFTW, planned by trying its ways: one of them exchanges blocks by MPI_Sendrecv. Each
// rank writes what it has got to a file, values.RANK.
#include <fftw3-mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  enum { rows = 96, columns = 160, fields = 3 };
  int rank = 0;
  ptrdiff_t mine = 0, first = 0, turned = 0, first_turned = 0;
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  ptrdiff_t const sizes[] = {rows, columns};
  ptrdiff_t const room =
      fftw_mpi_local_size_many_transposed(2, sizes, fields, FFTW_MPI_DEFAULT_BLOCK, FFTW_MPI_DEFAULT_BLOCK,
                                          MPI_COMM_WORLD, &mine, &first, &turned, &first_turned);
  double* const from = fftw_alloc_real((size_t)room * 2);
  double* const into = fftw_alloc_real((size_t)room * 2);
  fftw_plan const turn = fftw_mpi_plan_many_transpose(rows, columns, fields, FFTW_MPI_DEFAULT_BLOCK,
                                                      FFTW_MPI_DEFAULT_BLOCK, from, into, MPI_COMM_WORLD, FFTW_PATIENT);
  fftw_plan const back = fftw_mpi_plan_many_transpose(columns, rows, fields, FFTW_MPI_DEFAULT_BLOCK,
                                                      FFTW_MPI_DEFAULT_BLOCK, into, into, MPI_COMM_WORLD, FFTW_PATIENT);
  for (ptrdiff_t i = 0; i < mine * columns * fields; ++i) from[i] = (double)(first * columns * fields + i);
  char name[32];
  snprintf(name, sizeof name, "values.%d", rank);
  FILE* const file = fopen(name, "w");
  fftw_execute(turn);
  fwrite(into, sizeof *into, (size_t)(turned * rows * fields), file);
  fftw_execute(back);
  fwrite(into, sizeof *into, (size_t)(mine * columns * fields), file);
  fclose(file);
  fftw_destroy_plan(turn);
  fftw_destroy_plan(back);
  fftw_free(from);
  fftw_free(into);
  fftw_mpi_cleanup();
  MPI_Finalize();
  return 0;
}
