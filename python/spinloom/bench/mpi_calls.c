/* MPI calls - what single calls of one MPI take between two ranks, for `spinloom bench mpi calls`.
 *
 * Contract: mpi_job.h; "time" answers ns a call, REPETITIONS numbers. Rank 0 measures. KIND is
 *     pingpong               a round trip, MPI_Send and MPI_Recv
 *     send, isend, irecv     a message to oneself: Irecv Send Wait; Isend Recv Wait; Irecv Isend Wait Wait
 *     iprobe, test           a look for a message that is not there, at a receive that nothing answers
 *     pack, unpack           MPI_Pack, MPI_Unpack of the first type
 *     first                  a round trip with types that were never used before; "time" answers two numbers for each
 *                            repetition, of the first and of the second round trip, and ignores CALLS
 *   For `first` both ranks build both types anew, each time with another displacement (of whole cache lines), commit them,
 *   and warm up the same memory by a round trip with types that are known.
 * Threads: one. Time: now_ns() is the host's clock.
 */
#define _POSIX_C_SOURCE 200809L
#include "mpi_job.h"

enum { tag = 1, never = 2, fresh_max = 4096, line_bytes = 64 };

static char* packed;
static MPI_Request waiting = MPI_REQUEST_NULL;

/* Of `first`: memory for every displacement, and how many there were. */
static char* room[2];
static int64_t fresh_count;

static char* base(int i) { return sides[i].memory - sides[i].true_lb; }

static void pingpong(char* out, MPI_Datatype sent, char* in, MPI_Datatype received) {
  if (rank == 0) MPI_Send(out, 1, sent, 1, tag, MPI_COMM_WORLD);
  MPI_Recv(in, 1, received, !rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(out, 1, sent, 0, tag, MPI_COMM_WORLD);
}

static void round_trip(void) { pingpong(base(0), sides[0].type, base(1), sides[1].type); }

static void receive(MPI_Request* request, int with) {
  MPI_Irecv(base(1), 1, sides[1].type, rank, with, MPI_COMM_WORLD, request);
}

static void send_to_oneself(void) {
  MPI_Request received;
  receive(&received, tag);
  MPI_Send(base(0), 1, sides[0].type, rank, tag, MPI_COMM_WORLD);
  MPI_Wait(&received, MPI_STATUS_IGNORE);
}

static void isend_to_oneself(void) {
  MPI_Request sent;
  MPI_Isend(base(0), 1, sides[0].type, rank, tag, MPI_COMM_WORLD, &sent);
  MPI_Recv(base(1), 1, sides[1].type, rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static void irecv_from_oneself(void) {
  MPI_Request received, sent;
  receive(&received, tag);
  MPI_Isend(base(0), 1, sides[0].type, rank, tag, MPI_COMM_WORLD, &sent);
  MPI_Wait(&received, MPI_STATUS_IGNORE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
}

static int probe(void) {
  int flag = 0;
  MPI_Iprobe(rank, never, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  return flag;
}

static int test(void) {
  int flag = 0;
  MPI_Test(&waiting, &flag, MPI_STATUS_IGNORE);
  return flag;
}

static void look(void) { (void)probe(); }
static void look_at_receive(void) { (void)test(); }

static void pack(void) {
  int at = 0;
  MPI_Pack(base(0), 1, sides[0].type, packed, (int)sides[0].size, &at, MPI_COMM_WORLD);
}

static void unpack(void) {
  int at = 0;
  MPI_Unpack(packed, (int)sides[0].size, &at, base(0), 1, sides[0].type, MPI_COMM_WORLD);
}

static void nothing(void) {}

static int is(const char* kind, const char* other) { return strcmp(kind, other) == 0; }

typedef void (*called)(void);

/* What this rank does of a call. */
static called call_of(const char* kind) {
  static const struct {
    const char* kind;
    called call;
  } known[] = {{"send", send_to_oneself}, {"isend", isend_to_oneself}, {"irecv", irecv_from_oneself}, {"iprobe", look},
               {"test", look_at_receive}, {"pack", pack},              {"unpack", unpack}};
  if (is(kind, "pingpong")) return round_trip;
  for (size_t i = 0; rank == 0 && i < sizeof known / sizeof *known; ++i)
    if (is(kind, known[i].kind)) return known[i].call;
  return nothing;
}

/* A receive that is open as long as `test` is measured. */
static void open_receive(const char* kind) {
  if (rank == 0 && is(kind, "test")) receive(&waiting, never);
}

/* What nothing has answered is answered, so that its bytes can be compared. */
static void close_receive(const char* kind) {
  if (rank != 0) return;
  if (is(kind, "test")) {
    MPI_Send(base(0), 1, sides[0].type, rank, never, MPI_COMM_WORLD);
    while (!test()) continue;
  } else if (is(kind, "iprobe")) {
    MPI_Request request;
    MPI_Isend(base(0), 1, sides[0].type, rank, never, MPI_COMM_WORLD, &request);
    while (!probe()) continue;
    MPI_Recv(base(1), 1, sides[1].type, rank, never, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

static MPI_Datatype fresh(int i, int64_t displacement) {
  MPI_Aint at = (MPI_Aint)displacement;
  MPI_Datatype shape = build(sides[i].words, sides[i].words + sides[i].word_count), made;
  MPI_Type_create_hindexed_block(1, 1, &at, shape, &made);
  MPI_Type_commit(&made);
  MPI_Type_free(&shape);
  return made;
}

/* False: there were too many. */
static int first(double spent[2], unsigned long long* hash) {
  if (++fresh_count > fresh_max) return 0;
  const int64_t displacement = line_bytes * fresh_count;
  MPI_Datatype types[2];
  char* start[2];
  for (int i = 0; i < 2; ++i) {
    types[i] = fresh(i, displacement);
    start[i] = room[i] - sides[i].true_lb;
    if (hash) fill(room[i] + displacement, sides[i].true_extent, i ? (uint64_t)1 << 40 : 0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  pingpong(start[0] + displacement, sides[0].type, start[1] + displacement, sides[1].type);
  if (hash) fill(room[1] + displacement, sides[1].true_extent, (uint64_t)1 << 40);
  for (int use = 0; use < 2; ++use) {
    const double begin = now_ns();
    pingpong(start[0], types[0], start[1], types[1]);
    spent[use] = now_ns() - begin;
  }
  if (hash) *hash = hash_of(room[1] + displacement, sides[1].true_extent);
  for (int i = 0; i < 2; ++i) MPI_Type_free(&types[i]);
  return 1;
}

static int load(const char* path) {
  if (!load_sides(path)) return 0;
  free(packed);
  packed = must_allocate(sides[0].size);
  for (int i = 0; i < 2; ++i) {
    free(room[i]);
    room[i] = must_allocate(sides[i].true_extent + (fresh_max + 1) * line_bytes);
    memset(room[i], 0, (size_t)(sides[i].true_extent + (fresh_max + 1) * line_bytes));
  }
  return 1;
}

static void refill(void) {
  fill(sides[0].memory, sides[0].true_extent, 0);
  fill(sides[1].memory, sides[1].true_extent, (uint64_t)1 << 40);
  fill(packed, sides[0].size, (uint64_t)1 << 41);
}

static unsigned long long check(const char* kind) {
  double spent[2];
  unsigned long long hash = 0;
  refill();
  if (is(kind, "unpack")) fill(sides[0].memory, sides[0].true_extent, (uint64_t)1 << 40);
  MPI_Barrier(MPI_COMM_WORLD);
  if (is(kind, "first")) {
    first(spent, &hash);
    return hash;
  }
  open_receive(kind);
  call_of(kind)();
  close_receive(kind);
  if (is(kind, "pack")) return hash_of(packed, sides[0].size);
  const side* s = &sides[!is(kind, "unpack")];
  return hash_of(s->memory, s->true_extent);
}

static void measure(FILE* out, const char* kind, int repetitions, long calls) {
  double spent[2];
  MPI_Barrier(MPI_COMM_WORLD);
  if (is(kind, "first")) {
    for (int i = 0; i < repetitions && first(spent, NULL); ++i) fprintf(out, "%.0f %.0f ", spent[0], spent[1]);
    return;
  }
  const called call = call_of(kind);
  open_receive(kind);
  call();
  for (int i = 0; i < repetitions; ++i) {
    const double begin = now_ns();
    for (long done = 0; done < calls; ++done) call();
    fprintf(out, "%.3f ", (now_ns() - begin) / (double)calls);
  }
  close_receive(kind);
}

int main(int argc, char** argv) { return serve(argc, argv, &(program){load, check, measure}); }
