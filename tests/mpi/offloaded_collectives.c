/* Random non-blocking and persistent collective calls, several under way at a time, on several communicators, completed
 * in every way among messages; each result is that of the blocking call with the same arguments, byte for byte.
 *
 *     mpiexec -n 3 ./offloaded_collectives SEED ROUNDS [once|die]
 *
 * once: no persistent calls, which MPICH 4.0 alone does wrongly (it copies a rank's own block when the request is
 * made).
 *
 * die: as once, and rank 0 is killed in round 20.
 *
 * Sums of floating-point numbers are of small whole numbers, which any order adds to the same. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { most_calls = 6, most_messages = 2, most_ints = 40000, guard = 64, comms = 4 };
enum { BARRIER, BCAST, GATHER, SCATTER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, SCATTER_BLOCK, SCAN, EXSCAN, kinds };

typedef struct {
  int kind, comm, root, in_place, count;
  MPI_Datatype number; /* the type of reductions */
  MPI_Op op;
  /* This rank's way to describe `count` ints: as they are, or every second one of twice as many. */
  int spread_out, spread_in;
  MPI_Datatype out_type, in_type;
  int out_count, in_count;
  unsigned char *out, *in, *want;
  size_t bytes;
} Call;

static MPI_Comm comm_of[comms];
static int rank, ranks, may_persist;
static uint64_t common, own;

static uint64_t draw(uint64_t* state) {
  uint64_t word = *state += 0x9e3779b97f4a7c15;
  word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  word = (word ^ word >> 27) * 0x94d049bb133111eb;
  return word ^ word >> 31;
}
static int below(uint64_t* state, int limit) { return (int)(draw(state) % (uint64_t)limit); }

static void user_sum(void* in, void* into, int* count, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)into)[i] += ((int*)in)[i];
}
static MPI_Op own_op;

static void fail(const char* what, const Call* call) {
  fprintf(stderr, "rank %d: %s: kind %d comm %d root %d count %d in place %d spread %d %d\n", rank, what, call->kind,
          call->comm, call->root, call->count, call->in_place, call->spread_out, call->spread_in);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

static void describe(int count, int spread, MPI_Datatype* type, int* number) {
  *type = MPI_INT;
  *number = count;
  if (!spread) return;
  MPI_Datatype vector;
  MPI_Type_vector(count, 1, 2, MPI_INT, &vector);
  MPI_Type_create_resized(vector, 0, (MPI_Aint)count * 2 * (MPI_Aint)sizeof(int), type);
  MPI_Type_free(&vector);
  MPI_Type_commit(type);
  *number = 1;
}

static int reduces(int kind) { return kind >= REDUCE; }

static void draw_numbers(Call* call) {
  static const int sizes[] = {0, 1, 2, 3, 17, 64, 200, 1000, 5000, 20000};
  const int size_at = below(&common, 40);
  call->count = size_at < 8 ? sizes[size_at] : size_at < 10 ? sizes[size_at] : sizes[1 + size_at % 6];
  const int type = below(&common, 4);
  const int op = below(&common, 12);
  call->number = type == 0 ? MPI_INT : type == 1 ? MPI_DOUBLE : type == 2 ? MPI_LONG_LONG : MPI_INT;
  const MPI_Op ops[] = {MPI_SUM,  MPI_SUM,  MPI_SUM,  MPI_MAX,  MPI_MIN, MPI_PROD,
                        MPI_BAND, MPI_BXOR, MPI_LAND, MPI_LXOR, own_op,  MPI_MINLOC};
  call->op = ops[op];
  if (type == 1 && op >= 6) call->op = MPI_SUM;
  if (call->op == own_op) call->number = MPI_INT;
  if (call->op == MPI_MINLOC) call->number = MPI_2INT;
}

static void write_numbers(const Call* call, unsigned char* at, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) at[i] = (unsigned char)(0xa5 + i);
  if (!reduces(call->kind)) {
    for (size_t i = 0; i < bytes; ++i) at[i] = (unsigned char)draw(&own);
    return;
  }
  if (call->number == MPI_DOUBLE) {
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
      const double number = below(&own, 9) - 4;
      memcpy(at + i, &number, 8);
    }
  } else if (call->number == MPI_LONG_LONG) {
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
      const long long number = (long long)draw(&own);
      memcpy(at + i, &number, 8);
    }
  } else {
    for (size_t i = 0; i + 4 <= bytes; i += 4) {
      const int number = below(&own, 3) == 0 ? 0 : below(&own, 60000) - 30000;
      memcpy(at + i, &number, 4);
    }
  }
}

static void begin(Call* call, int limit) {
  int size = 0;
  call->comm = below(&common, limit);
  MPI_Comm_size(comm_of[call->comm], &size);
  call->kind = below(&common, kinds);
  /* The halves of the job differ in size: the root must be a rank of both. */
  call->root = below(&common, ranks) % size;
  call->in_place = below(&common, 4) == 0;
  draw_numbers(call);
  const int can_spread = !reduces(call->kind);
  call->spread_out = can_spread && call->count > 0 && below(&own, 4) == 0;
  call->spread_in = can_spread && call->count > 0 && below(&own, 4) == 0;
  describe(call->count, call->spread_out, &call->out_type, &call->out_count);
  describe(call->count, call->spread_in, &call->in_type, &call->in_count);
  call->bytes = (size_t)call->count * 16 * (size_t)size + guard;
  call->out = malloc(call->bytes);
  call->in = malloc(call->bytes);
  call->want = malloc(call->bytes);
  write_numbers(call, call->out, call->bytes);
  write_numbers(call, call->in, call->bytes);
  memcpy(call->want, call->in, call->bytes);
}

static int at_root(const Call* call) {
  int me = 0;
  MPI_Comm_rank(comm_of[call->comm], &me);
  return me == call->root;
}

static void reference(const Call* c) {
  const MPI_Comm comm = comm_of[c->comm];
  const void* in_place = c->in_place ? MPI_IN_PLACE : c->out;
  const void* at_root_only = at_root(c) ? in_place : c->out;
  switch (c->kind) {
    case BARRIER: MPI_Barrier(comm); break;
    case BCAST: MPI_Bcast(c->want, c->in_count, c->in_type, c->root, comm); break;
    case GATHER:
      MPI_Gather(at_root_only, c->out_count, c->out_type, c->want, c->in_count, c->in_type, c->root, comm);
      break;
    case SCATTER: {
      const int keeps = at_root(c) && c->in_place;
      MPI_Scatter(c->out, c->out_count, c->out_type, keeps ? MPI_IN_PLACE : c->want, c->in_count, c->in_type, c->root,
                  comm);
      break;
    }
    case ALLGATHER: MPI_Allgather(in_place, c->out_count, c->out_type, c->want, c->in_count, c->in_type, comm); break;
    case ALLTOALL: MPI_Alltoall(in_place, c->out_count, c->out_type, c->want, c->in_count, c->in_type, comm); break;
    case REDUCE: { /* MPICH 4.0's MPI_Reduce reads at MPI_IN_PLACE now and then */
      unsigned char* copy = malloc(c->bytes);
      memcpy(copy, at_root_only == c->out ? c->out : c->want, c->bytes);
      MPI_Reduce(copy, c->want, c->count, c->number, c->op, c->root, comm);
      free(copy);
      break;
    }
    case ALLREDUCE: MPI_Allreduce(in_place, c->want, c->count, c->number, c->op, comm); break;
    case SCATTER_BLOCK: MPI_Reduce_scatter_block(in_place, c->want, c->count, c->number, c->op, comm); break;
    case SCAN: MPI_Scan(in_place, c->want, c->count, c->number, c->op, comm); break;
    case EXSCAN: MPI_Exscan(in_place, c->want, c->count, c->number, c->op, comm); break;
    default: break;
  }
}

static void start(const Call* c, MPI_Request* request) {
  const MPI_Comm comm = comm_of[c->comm];
  const void* in_place = c->in_place ? MPI_IN_PLACE : c->out;
  const void* at_root_only = at_root(c) ? in_place : c->out;
  switch (c->kind) {
    case BARRIER: MPI_Ibarrier(comm, request); break;
    case BCAST: MPI_Ibcast(c->in, c->in_count, c->in_type, c->root, comm, request); break;
    case GATHER:
      MPI_Igather(at_root_only, c->out_count, c->out_type, c->in, c->in_count, c->in_type, c->root, comm, request);
      break;
    case SCATTER: {
      const int keeps = at_root(c) && c->in_place;
      MPI_Iscatter(c->out, c->out_count, c->out_type, keeps ? MPI_IN_PLACE : c->in, c->in_count, c->in_type, c->root,
                   comm, request);
      break;
    }
    case ALLGATHER:
      MPI_Iallgather(in_place, c->out_count, c->out_type, c->in, c->in_count, c->in_type, comm, request);
      break;
    case ALLTOALL:
      MPI_Ialltoall(in_place, c->out_count, c->out_type, c->in, c->in_count, c->in_type, comm, request);
      break;
    case REDUCE: MPI_Ireduce(at_root_only, c->in, c->count, c->number, c->op, c->root, comm, request); break;
    case ALLREDUCE: MPI_Iallreduce(in_place, c->in, c->count, c->number, c->op, comm, request); break;
    case SCATTER_BLOCK: MPI_Ireduce_scatter_block(in_place, c->in, c->count, c->number, c->op, comm, request); break;
    case SCAN: MPI_Iscan(in_place, c->in, c->count, c->number, c->op, comm, request); break;
    case EXSCAN: MPI_Iexscan(in_place, c->in, c->count, c->number, c->op, comm, request); break;
    default: break;
  }
}

#if MPI_VERSION >= 4
static void init(const Call* c, MPI_Request* request) {
  const MPI_Comm comm = comm_of[c->comm];
  const MPI_Info info = MPI_INFO_NULL;
  const void* in_place = c->in_place ? MPI_IN_PLACE : c->out;
  const void* at_root_only = at_root(c) ? in_place : c->out;
  switch (c->kind) {
    case BARRIER: MPI_Barrier_init(comm, info, request); break;
    case BCAST: MPI_Bcast_init(c->in, c->in_count, c->in_type, c->root, comm, info, request); break;
    case GATHER:
      MPI_Gather_init(at_root_only, c->out_count, c->out_type, c->in, c->in_count, c->in_type, c->root, comm, info,
                      request);
      break;
    case SCATTER: {
      const int keeps = at_root(c) && c->in_place;
      MPI_Scatter_init(c->out, c->out_count, c->out_type, keeps ? MPI_IN_PLACE : c->in, c->in_count, c->in_type,
                       c->root, comm, info, request);
      break;
    }
    case ALLGATHER:
      MPI_Allgather_init(in_place, c->out_count, c->out_type, c->in, c->in_count, c->in_type, comm, info, request);
      break;
    case ALLTOALL:
      MPI_Alltoall_init(in_place, c->out_count, c->out_type, c->in, c->in_count, c->in_type, comm, info, request);
      break;
    case REDUCE: MPI_Reduce_init(at_root_only, c->in, c->count, c->number, c->op, c->root, comm, info, request); break;
    case ALLREDUCE: MPI_Allreduce_init(in_place, c->in, c->count, c->number, c->op, comm, info, request); break;
    case SCATTER_BLOCK:
      MPI_Reduce_scatter_block_init(in_place, c->in, c->count, c->number, c->op, comm, info, request);
      break;
    case SCAN: MPI_Scan_init(in_place, c->in, c->count, c->number, c->op, comm, info, request); break;
    case EXSCAN: MPI_Exscan_init(in_place, c->in, c->count, c->number, c->op, comm, info, request); break;
    default: break;
  }
}
#endif

/* Each rank in a way of its own. */
static void complete(MPI_Request* requests, int count) {
  MPI_Status statuses[most_calls + 2 * most_messages];
  int indices[most_calls + 2 * most_messages];
  int flag = 0;
  int done = 0;
  switch (below(&own, 7)) {
    case 0: MPI_Waitall(count, requests, MPI_STATUSES_IGNORE); break;
    case 1: MPI_Waitall(count, requests, statuses); break;
    case 2:
      for (int i = count - 1; i >= 0; --i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      break;
    case 3:
      while (!flag) MPI_Testall(count, requests, &flag, statuses);
      break;
    case 4:
      for (int i = 0; i < count; ++i) MPI_Waitany(count, requests, &indices[0], &statuses[0]);
      break;
    case 5:
      for (int left = count; left > 0; left -= done) MPI_Waitsome(count, requests, &done, indices, statuses);
      break;
    default:
      for (int i = 0; i < count; ++i) {
        for (flag = 0; !flag;) MPI_Request_get_status(requests[i], &flag, &statuses[0]);
        for (flag = 0; !flag;) MPI_Test(&requests[i], &flag, &statuses[0]);
      }
  }
}

static int number_bytes(MPI_Datatype number) {
  int bytes = 0;
  MPI_Type_size(number, &bytes);
  return bytes;
}

static void end(Call* call) {
  reference(call);
  /* Undefined are the result of an exclusive scan at rank 0, and an in-place buffer behind its rank's own block. */
  int me = 0;
  MPI_Comm_rank(comm_of[call->comm], &me);
  size_t defined = call->bytes;
  if (call->kind == EXSCAN && me == 0) defined = 0;
  if (call->kind == SCATTER_BLOCK && call->in_place) defined = (size_t)call->count * (size_t)number_bytes(call->number);
  if (memcmp(call->in, call->want, defined) != 0) fail("wrong bytes", call);
  if (call->spread_out) MPI_Type_free(&call->out_type);
  if (call->spread_in) MPI_Type_free(&call->in_type);
  free(call->out);
  free(call->in);
  free(call->want);
}

static void one_round(int round) {
  Call calls[most_calls];
  MPI_Request requests[most_calls + 2 * most_messages];
  int got[most_messages], sent[most_messages];
  const int count = 1 + below(&common, most_calls);
  const int messages = below(&common, most_messages + 1);
  const int is_persistent = below(&common, 4) == 0 && may_persist;
  int open = 0;
  for (int i = 0; i < messages; ++i) {
    sent[i] = round * 100 + rank;
    got[i] = -1;
    MPI_Irecv(&got[i], 1, MPI_INT, (rank + 1) % ranks, i, MPI_COMM_WORLD, &requests[open++]);
  }
  /* A rank may be late. */
  if (below(&own, 5) == 0) usleep(200U * (unsigned)below(&own, 10));
#if MPI_VERSION >= 4
  if (is_persistent) { /* no communicator has one rank here: there MPICH 4.0 copies when the request is made */
    MPI_Request kept[most_calls];
    for (int i = 0; i < count; ++i) {
      begin(&calls[i], 2);
      init(&calls[i], &kept[i]);
    }
    for (int start_number = 0; start_number < 3; ++start_number) {
      for (int i = 0; i < count; ++i) {
        write_numbers(&calls[i], calls[i].out, calls[i].bytes);
        write_numbers(&calls[i], calls[i].in, calls[i].bytes);
        memcpy(calls[i].want, calls[i].in, calls[i].bytes);
      }
      if (below(&common, 2) == 0) { /* MPICH wants one order of all ranks */
        MPI_Startall(count, kept);
      } else {
        for (int i = count - 1; i >= 0; --i) MPI_Start(&kept[i]);
      }
      MPI_Waitall(count, kept, MPI_STATUSES_IGNORE);
      for (int i = 0; start_number < 2 && i < count; ++i) {
        Call copy = calls[i];
        copy.out = malloc(copy.bytes);
        copy.in = malloc(copy.bytes);
        copy.want = malloc(copy.bytes);
        memcpy(copy.out, calls[i].out, copy.bytes);
        memcpy(copy.in, calls[i].in, copy.bytes);
        memcpy(copy.want, calls[i].want, copy.bytes);
        if (copy.spread_out) MPI_Type_dup(calls[i].out_type, &copy.out_type);
        if (copy.spread_in) MPI_Type_dup(calls[i].in_type, &copy.in_type);
        end(&copy);
      }
    }
    for (int i = 0; i < count; ++i) MPI_Request_free(&kept[i]);
  } else
#endif
  {
    (void)is_persistent;
    for (int i = 0; i < count; ++i) {
      begin(&calls[i], comms);
      start(&calls[i], &requests[open++]);
    }
  }
  for (int i = 0; i < messages; ++i) {
    MPI_Isend(&sent[i], 1, MPI_INT, (rank + ranks - 1) % ranks, i, MPI_COMM_WORLD, &requests[open++]);
  }
  complete(requests, open);
  for (int i = 0; i < messages; ++i) {
    if (got[i] != round * 100 + (rank + 1) % ranks) {
      fprintf(stderr, "rank %d: message %d is %d\n", rank, i, got[i]);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
  for (int i = 0; i < count; ++i) end(&calls[i]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  const int rounds = argc > 2 ? atoi(argv[2]) : 100;
  const int dies = argc > 3 && strcmp(argv[3], "die") == 0;
  may_persist = argc <= 3;
  common = seed;
  own = seed * 1000 + (uint64_t)rank + 1;
  MPI_Op_create(&user_sum, 1, &own_op);
  comm_of[0] = comm_of[3] = MPI_COMM_WORLD; /* the last two are for calls that are not persistent */
  MPI_Comm_dup(MPI_COMM_WORLD, &comm_of[1]);
  MPI_Comm_split(MPI_COMM_WORLD, rank > ranks / 2, -rank, &comm_of[2]);
  for (int round = 0; round < rounds; ++round) {
    if (dies && round == 20 && rank == 0) raise(SIGKILL);
    one_round(round);
    if (round % 50 == 49) { /* handles and numbers of communicators are used again */
      MPI_Comm_free(&comm_of[1]);
      MPI_Comm_free(&comm_of[2]);
      MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm_of[1]);
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm_of[2]);
    }
  }
  MPI_Comm_free(&comm_of[1]);
  MPI_Comm_free(&comm_of[2]);
  MPI_Op_free(&own_op);
  if (rank == 0) printf("all %d rounds are right\n", rounds);
  MPI_Finalize();
  return 0;
}
