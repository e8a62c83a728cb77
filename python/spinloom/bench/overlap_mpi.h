/* What overlap.c measures, by an MPI's non-blocking collectives. */
#include <mpi.h>

static MPI_Request request;

static void carrier_begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static void carrier_prepare(void) {}

static void operation_start(void) {
  const int bytes = (int)wanted.bytes;
  const MPI_Comm all = MPI_COMM_WORLD;
  switch (wanted.what) {
    case ALLREDUCE: MPI_Iallreduce(given, got, bytes, MPI_UINT8_T, MPI_BXOR, all, &request); break;
    case BCAST: MPI_Ibcast(got, bytes, MPI_BYTE, 0, all, &request); break;
    case SCATTER: MPI_Iscatter(given, bytes, MPI_BYTE, got, bytes, MPI_BYTE, 0, all, &request); break;
    default: MPI_Iallgather(given, bytes, MPI_BYTE, got, bytes, MPI_BYTE, all, &request); break;
  }
}

static void operation_test(void) {
  int done;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void operation_wait(void) { MPI_Wait(&request, MPI_STATUS_IGNORE); }

static void operation_free(void) {}

static int64_t agreed_start(int64_t mine) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Bcast(&mine, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  return mine;
}

static void most_of_all(int64_t* values, long count) {
  MPI_Allreduce(MPI_IN_PLACE, values, (int)count, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
}

static void carrier_end(void) { MPI_Finalize(); }
