/* A 3-D FFT that computes while it communicates: of a box of N x N x Z complex doubles each rank has PLANES planes of N x N.
 *
 * fft3d [--check] N PLANES [TIMES]: stage by stage a plane is transformed in x and y, then the plane before it has arrived,
 * then this one is on its way (MPI_Ialltoall): the transposition of one goes on beside the computation of the next. At the
 * end each rank has N / P rows of all planes, which it transforms in z. Rank r has the planes r, r + P, r + 2 P, ..., so
 * that what arrives lies in order. With --check rank 0 compares all numbers with those of a serial 3-D FFT. The number of
 * ranks P must divide N. Needs FFTW 3: mpicc fft3d.c -lfftw3 -lm */
#include <complex.h>
#include <fftw3.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, n, planes, depth, rows; /* depth: planes of all; rows: of a plane, that a rank has at the end */
static double complex *mine, *box;              /* own planes; own rows of all planes, by z, y, x */
static fftw_plan plane_plan, column_plan;
static double waited_s, staged_s;

static double complex value(int x, int y, int z) {
  unsigned const mixed = (x * 73856093u) ^ (y * 19349663u) ^ (z * 83492791u);
  return mixed % 1009 / 1009.0 + mixed % 917 / 917.0 * I;
}

static void fill(void) {
  for (int plane = 0; plane < planes; ++plane)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) mine[((size_t)plane * n + y) * n + x] = value(x, y, plane * ranks + rank);
}

static void wait_for(MPI_Request *request) {
  double const begin = MPI_Wtime();
  MPI_Wait(request, MPI_STATUS_IGNORE);
  waited_s += MPI_Wtime() - begin;
}

static void transform(void) {
  size_t const plane_size = (size_t)n * n;
  MPI_Request before = MPI_REQUEST_NULL, now;
  double const begin = MPI_Wtime();
  for (int plane = 0; plane < planes; ++plane) {
    double complex *const one = mine + plane * plane_size;
    fftw_execute_dft(plane_plan, one, one);
    if (plane > 0) wait_for(&before);
    double complex *const place = box + plane * (size_t)ranks * rows * n;
    MPI_Ialltoall(one, rows * n, MPI_C_DOUBLE_COMPLEX, place, rows * n, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD, &now);
    before = now;
  }
  wait_for(&before);
  staged_s += MPI_Wtime() - begin;
  fftw_execute(column_plan);
}

/* The largest difference from a serial FFT, over its largest number: on rank 0. */
static double difference(void) {
  size_t const slab = (size_t)depth * rows * n, whole = (size_t)depth * n * n;
  double complex *const all = rank == 0 ? fftw_malloc(slab * ranks * sizeof *all) : NULL;
  MPI_Gather(box, (int)slab, MPI_C_DOUBLE_COMPLEX, all, (int)slab, MPI_C_DOUBLE_COMPLEX, 0, MPI_COMM_WORLD);
  if (rank != 0) return 0;
  double complex *const serial = fftw_malloc(whole * sizeof *serial);
  for (int z = 0; z < depth; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) serial[((size_t)z * n + y) * n + x] = value(x, y, z);
  fftw_plan const plan = fftw_plan_dft_3d(depth, n, n, serial, serial, FFTW_FORWARD, FFTW_ESTIMATE);
  fftw_execute(plan);
  double most = 0, largest = 0;
  for (int z = 0; z < depth; ++z)
    for (int y = 0; y < n; ++y)
      for (int x = 0; x < n; ++x) {
        double complex const is = all[y / rows * slab + ((size_t)z * rows + y % rows) * n + x];
        double complex const wanted = serial[((size_t)z * n + y) * n + x];
        most = fmax(most, cabs(is - wanted)), largest = fmax(largest, cabs(wanted));
      }
  fftw_destroy_plan(plan);
  fftw_free(serial), fftw_free(all);
  return most / largest;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int const is_check = argc > 1 && strcmp(argv[1], "--check") == 0;
  if (is_check) --argc, ++argv;
  n = argc > 1 ? atoi(argv[1]) : 0;
  planes = argc > 2 ? atoi(argv[2]) : 0;
  int const times = argc > 3 ? atoi(argv[3]) : 1;
  if (n < ranks || n % ranks != 0 || planes < 1 || times < 1) {
    if (rank == 0)
      fprintf(stderr, "fft3d [--check] N PLANES [TIMES]: N must be a multiple of %d, the number of ranks\n", ranks);
    MPI_Finalize();
    return 2;
  }
  depth = planes * ranks, rows = n / ranks;
  size_t const bytes = (size_t)planes * n * n * sizeof *mine;
  mine = fftw_malloc(bytes), box = fftw_malloc(bytes);
  if (!mine || !box) MPI_Abort(MPI_COMM_WORLD, 1);
  int const columns = rows * n;
  plane_plan = fftw_plan_dft_2d(n, n, mine, mine, FFTW_FORWARD, FFTW_ESTIMATE | FFTW_UNALIGNED);
  column_plan = fftw_plan_many_dft(1, &depth, columns, box, NULL, columns, 1, box, NULL, columns, 1, FFTW_FORWARD,
                                   FFTW_ESTIMATE);
  for (int time = 0; time < times; ++time) {
    fill();
    MPI_Barrier(MPI_COMM_WORLD);
    transform();
  }
  int wrong = 0;
  if (is_check) {
    double const most = difference();
    wrong = !(most < 1e-12);
    if (rank == 0) printf("differs from a serial FFT by %.1e of its largest number%s\n", most, wrong ? ": wrong" : "");
  }
  if (rank == 0)
    printf("%d x %d x %d on %d ranks: a stage takes %.1f us, %.1f us of it wait\n", n, n, depth, ranks,
           staged_s / times / planes * 1e6, waited_s / times / planes * 1e6);
  fftw_destroy_plan(plane_plan), fftw_destroy_plan(column_plan);
  fftw_free(mine), fftw_free(box);
  MPI_Finalize();
  return wrong;
}
