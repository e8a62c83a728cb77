/* Messages of a rank to itself, of types with gaps, by every call that sends and receives; what each gives is hashed.
 * "bench": the time of a halo to oneself, and of a loop that moves the same bytes.
 *   mpiexec -n 1 ./to_oneself; mpiexec -n 2 ./to_oneself; mpiexec -n 1 ./to_oneself bench 128 51 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 1024, width = 8, cells = rows * width, kinds = 15, rounds = 6 };

static uint64_t hash = 0xcbf29ce484222325;
static char on_no_heap[2][cells * sizeof(double)];

static void add(const void* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) hash = (hash ^ ((const unsigned char*)bytes)[i]) * 0x100000001b3;
}

static void add_status(MPI_Status* status) {
  int elements = 0;
  MPI_Get_elements(status, MPI_DOUBLE, &elements);
  const int told[3] = {status->MPI_SOURCE, status->MPI_TAG, elements};
  add(told, sizeof told);
}

static void fill(double* to, double begin) {
  for (int i = 0; i < cells; ++i) to[i] = begin + i;
}

/* Columns of a grid; those of its upper half, side by side, are as many doubles. */
static MPI_Datatype columns(int count, int swapped) {
  MPI_Datatype made;
  if (swapped) {
    MPI_Datatype twice;
    MPI_Type_vector(rows / 2, count, width, MPI_DOUBLE, &made);
    MPI_Type_create_hvector(2, 1, (MPI_Aint)sizeof(double) * (width / 2), made, &twice);
    MPI_Type_free(&made);
    made = twice;
  } else {
    MPI_Type_vector(rows, count, width, MPI_DOUBLE, &made);
  }
  MPI_Type_commit(&made);
  return made;
}

/* One message, received as `kind` says. Receives are posted before where the call that sends may wait. */
static void one(int kind, MPI_Comm comm, int self, double* from, double* to, MPI_Datatype sent, MPI_Datatype got) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Status statuses[2], *const status = &statuses[1];
  MPI_Message message;
  int flag = 0;
  memset(statuses, 0, sizeof statuses);
  const int tag = 3 + kind;
  switch (kind) {
    case 0:
      MPI_Irecv(to, 1, got, self, tag, comm, &requests[1]);
      MPI_Isend(from, 1, sent, self, tag, comm, &requests[0]);
      MPI_Waitall(2, requests, statuses);
      break;
    case 1:
      MPI_Irecv(to, 1, got, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[1]);
      MPI_Send(from, 1, sent, self, tag, comm);
      MPI_Wait(&requests[1], status);
      break;
    case 2:
      MPI_Irecv(to, 1, got, self, MPI_ANY_TAG, comm, &requests[1]);
      MPI_Ssend(from, 1, sent, self, tag, comm);
      MPI_Wait(&requests[1], status);
      break;
    case 3: MPI_Sendrecv(from, 1, sent, self, tag, to, 1, got, self, tag, comm, status); break;
    case 4:
      MPI_Isend(from, 1, sent, self, tag, comm, &requests[0]);
      MPI_Probe(MPI_ANY_SOURCE, tag, comm, status);
      add_status(status);
      MPI_Recv(to, 1, got, status->MPI_SOURCE, tag, comm, status);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      break;
    case 5:
      MPI_Issend(from, 1, sent, self, tag, comm, &requests[0]);
      MPI_Mprobe(self, tag, comm, &message, status);
      add_status(status);
      MPI_Mrecv(to, 1, got, &message, status);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      break;
    case 6:
      MPI_Isend(from, 1, sent, self, tag, comm, &requests[0]);
      while (!flag) MPI_Improbe(self, tag, comm, &flag, &message, status);
      MPI_Imrecv(to, 1, got, &message, &requests[1]);
      MPI_Waitall(2, requests, statuses);
      break;
    case 7:
      MPI_Recv_init(to, 1, got, self, tag, comm, &requests[1]);
      MPI_Send_init(from, 1, sent, self, tag, comm, &requests[0]);
      for (int i = 0; i < 3; ++i) {
        from[0] += i;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, statuses);
        add_status(status);
      }
      MPI_Request_free(&requests[0]);
      MPI_Request_free(&requests[1]);
      break;
    case 8: /* two that overtake each other if order is not kept */
      MPI_Isend(from, 1, sent, self, tag, comm, &requests[0]);
      MPI_Isend(from + 1, 1, MPI_DOUBLE, self, tag, comm, &requests[1]);
      MPI_Recv(to, 1, got, self, tag, comm, status);
      add_status(status);
      MPI_Recv(to, 1, MPI_DOUBLE, self, tag, comm, status);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      break;
    case 9: /* room for more */
      MPI_Irecv(to, 3, got, self, tag, comm, &requests[1]);
      MPI_Isend(from, 1, sent, self, tag, comm, &requests[0]);
      while (!flag) MPI_Testall(2, requests, &flag, statuses);
      break;
    case 10: { /* a receive that is cancelled, and its message goes to the next one */
      int cancelled = 0;
      MPI_Irecv(to, 1, got, self, 99, comm, &requests[1]);
      MPI_Cancel(&requests[1]);
      MPI_Wait(&requests[1], status);
      MPI_Test_cancelled(status, &cancelled);
      add(&cancelled, sizeof cancelled);
      MPI_Isend(from, 1, sent, self, 99, comm, &requests[0]);
      MPI_Recv(to, 1, got, self, 99, comm, status);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      break;
    }
    case 11: /* the received bytes replace the sent ones */
      memcpy(to, from, cells * sizeof(double));
      MPI_Sendrecv_replace(to, 1, sent, self, tag, self, tag, comm, status);
      break;
    case 12: { /* too short: nothing behind the buffer changes */
      int class = 0;
      MPI_Irecv(to, 100, MPI_DOUBLE, self, tag, comm, &requests[1]);
      MPI_Isend(from, 1, sent, self, tag, comm, &requests[0]);
      MPI_Error_class(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), &class);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      memset(to, 0, 100 * sizeof(double));
      add(&class, sizeof class);
      break;
    }
    case 13: /* a run goes to a layout, and back */
      MPI_Sendrecv(from, rows * 2, MPI_DOUBLE, self, tag, to, 1, got, self, tag, comm, status);
      add_status(status);
      MPI_Sendrecv(from, 1, sent, self, tag, to, rows * 2, MPI_DOUBLE, self, tag, comm, status);
      break;
    case 14: /* the sender's type is freed before its message is taken */
      MPI_Type_dup(sent, &sent);
      MPI_Isend(from, 1, sent, self, tag, comm, &requests[0]);
      MPI_Type_free(&sent);
      MPI_Recv(to, 1, got, self, tag, comm, status);
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      break;
  }
  if (kind != 12) add_status(status);
  add(to, cells * sizeof(double));
}

/* Collective calls of one rank, whose blocks differ in size. */
static void alone(double* from, double* to, MPI_Datatype sent, MPI_Datatype got) {
  MPI_Comm grid;
  MPI_Request request;
  const MPI_Datatype out[4] = {sent, sent, MPI_DOUBLE, sent}, in[4] = {got, got, MPI_DOUBLE, got};
  const int counts[4] = {1, 1, 2, 1}, none[4] = {0, 0, 0, 0}, periods[2] = {1, 1}, sides[2] = {1, 1};
  const MPI_Aint far = (MPI_Aint)sizeof(double) * cells, places[4] = {0, far, 2 * far, 3 * far};
  const MPI_Aint near[4] = {0, 2 * (MPI_Aint)sizeof(double), 0, 4 * (MPI_Aint)sizeof(double)};
  MPI_Cart_create(MPI_COMM_SELF, 2, sides, periods, 0, &grid);
  memset(to, 0, 4 * (size_t)far);
  MPI_Alltoallw(from, counts, none, out, to, counts, none, in, MPI_COMM_SELF);
  add(to, 4 * (size_t)far);
  MPI_Gatherv(from, 1, sent, to + cells, counts, none, got, 0, MPI_COMM_SELF);
  add(to, 4 * (size_t)far);
  /* Both neighbours of a dimension are this rank: blocks of one dimension have one size. */
  const int same[4] = {1, 1, 1, 1};
  const MPI_Datatype all_out[4] = {sent, sent, sent, sent}, all_in[4] = {got, got, got, got};
  MPI_Neighbor_alltoallw(from, same, near, all_out, to, same, places, all_in, grid);
  add(to, 4 * (size_t)far);
  from[0] += 1;
  MPI_Ineighbor_alltoallw(from, same, near, all_out, to, same, places, all_in, grid, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  add(to, 4 * (size_t)far);
  MPI_Comm_free(&grid);
}

static double now(void) { return MPI_Wtime() * 1e6; }

static int by_time(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

/* The x faces of a cube with periodic sides, both ways, to oneself: by messages, and by a loop. */
static void bench(int side, int times) {
  const size_t edge = (size_t)side + 2, all = edge * edge * edge;
  double* const cube = calloc(all, sizeof *cube);
  double* const taken = malloc((size_t)times * sizeof *taken);
  MPI_Datatype faces[4];
  const int sizes[3] = {(int)edge, (int)edge, (int)edge}, face[3] = {side, side, 1};
  const int at[4] = {side, 0, 1, side + 1}; /* a source, a target, a source, a target */
  for (int i = 0; i < 4; ++i) {
    MPI_Type_create_subarray(3, sizes, face, (int[]){1, 1, at[i]}, MPI_ORDER_C, MPI_DOUBLE, &faces[i]);
    MPI_Type_commit(&faces[i]);
  }
  for (int way = 0; way < 3; ++way) {
    for (int n = 0; n < times; ++n) {
      for (size_t i = 0; i < all; ++i) cube[i] = (double)(i + (size_t)n);
      const double begin = now();
      if (way == 2) {
        for (size_t z = 1; z <= (size_t)side; ++z) {
          for (size_t y = 1; y <= (size_t)side; ++y) {
            double* const row = cube + (z * edge + y) * edge;
            row[0] = row[side];
            row[side + 1] = row[1];
          }
        }
      } else if (way == 1) {
        for (int i = 0; i < 4; i += 2) {
          MPI_Sendrecv(cube, 1, faces[i], 0, i, cube, 1, faces[i + 1], 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        }
      } else {
        MPI_Request requests[4];
        for (int i = 0; i < 4; i += 2) MPI_Irecv(cube, 1, faces[i + 1], 0, i, MPI_COMM_SELF, &requests[i]);
        for (int i = 0; i < 4; i += 2) MPI_Isend(cube, 1, faces[i], 0, i, MPI_COMM_SELF, &requests[i + 1]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
      }
      taken[n] = now() - begin;
    }
    qsort(taken, (size_t)times, sizeof *taken, by_time);
    static const char* const ways[] = {"MPI_Irecv, MPI_Isend, MPI_Waitall", "MPI_Sendrecv", "a loop"};
    printf("%s: %.1f us (median of %d)\n", ways[way], taken[times / 2], times);
  }
  for (int i = 0; i < 4; ++i) MPI_Type_free(&faces[i]);
  free(cube);
  free(taken);
}

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (count > 1 && strcmp(words[1], "bench") == 0) {
    bench(count > 2 ? atoi(words[2]) : 128, count > 3 ? atoi(words[3]) : 51);
    MPI_Finalize();
    return 0;
  }
  MPI_Comm comms[3], half;
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &half);
  comms[1] = half;
  comms[2] = MPI_COMM_SELF;
  double* const memory[2] = {malloc(4 * cells * sizeof(double)), malloc(4 * cells * sizeof(double))};
  MPI_Datatype types[2] = {columns(2, 0), columns(2, 1)};
  for (int round = 0; round < rounds; ++round) {
    for (int kind = 0; kind < kinds; ++kind) {
      MPI_Comm comm = comms[(round + kind) % 3];
      const int is_static = kind != 9 && round % 2;
      int self = 0;
      MPI_Comm_rank(comm, &self);
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
      double* const from = is_static ? (double*)on_no_heap[0] : memory[0];
      double* const to = is_static ? (double*)on_no_heap[1] : memory[1];
      fill(from, round * 1000 + kind);
      memset(to, 0, cells * sizeof(double));
      one(kind, comm, self, from, to, types[round & 1], types[round >> 1 & 1]);
    }
    alone(memory[0], memory[1], types[round & 1], types[round >> 1 & 1]);
  }
  uint64_t all[64] = {0};
  MPI_Gather(&hash, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < size; ++i) printf("rank %d: %016llx\n", i, (unsigned long long)all[i]);
  for (int i = 0; i < 2; ++i) {
    MPI_Type_free(&types[i]);
    free(memory[i]);
    MPI_Comm_free(&comms[i]);
  }
  MPI_Finalize();
  return 0;
}
