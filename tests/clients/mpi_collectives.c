/* Collective operations on the world, its reverse and its halves, blocking and not, each result compared.
 *
 * argv[1]: rounds (2), argv[2]: "blocking" leaves out the others. An element of rank r is value(r, i), so that every
 * result is known in closed form.
 */
#include "mpi_common.h"

enum { longest = 50000 };
static const int lengths[] = {1, 2, 100, 511, 1025, 8192, longest};

static MPI_Comm comm;
static int me, size, only_blocking;

static int value(int of, int i) { return of * 1000003 + i * 7 + 1; }

static int* values(int of, int count) {
  int* made = memory(sizeof(int) * (uint64_t)count);
  for (int i = 0; i < count; ++i) made[i] = value(of, i);
  return made;
}

static void same(int line, const int* at, int of, int count, int from) {
  long long bad = -1;
  for (int i = 0; i < count && bad < 0; ++i) {
    if (at[i] != value(of, from + i)) bad = i;
  }
  expect(line, "the first wrong element", -1, bad);
}

/* Sums of int wrap alike everywhere when they are taken as unsigned. */
static void is_sum(int line, const unsigned* at, int of_ranks, int count, int from) {
  long long bad = -1;
  for (int i = 0; i < count && bad < 0; ++i) {
    unsigned sum = 0;
    for (int r = 0; r < of_ranks; ++r) sum += (unsigned)value(r, from + i);
    if (at[i] != sum) bad = i;
  }
  expect(line, "the first wrong sum", -1, bad);
}

static void rooted(int count, int root) {
  int* mine = values(me, count);
  int* all = memory(sizeof(int) * (uint64_t)count * (uint64_t)size);
  int* one = values(me, count);
  MPI_Bcast(one, count, MPI_INT, root, comm);
  same(__LINE__, one, root, count, 0);

  memset(one, 0, sizeof(int) * (size_t)count);
  MPI_Reduce(mine, one, count, MPI_UNSIGNED, MPI_SUM, root, comm);
  if (me == root) is_sum(__LINE__, (unsigned*)one, size, count, 0);

  MPI_Gather(mine, count, MPI_INT, all, count, MPI_INT, root, comm);
  if (me == root) {
    for (int r = 0; r < size; ++r) same(__LINE__, all + r * count, r, count, 0);
    for (int i = 0; i < count * size; ++i) all[i] = value(root, i);
  }
  memset(one, 0, sizeof(int) * (size_t)count);
  MPI_Scatter(all, count, MPI_INT, one, count, MPI_INT, root, comm);
  same(__LINE__, one, root, count, me * count);

  /* rank r gives r parts of count, with a gap of one before each rank's */
  int* counts = memory(sizeof(int) * (uint64_t)size);
  int* starts = memory(sizeof(int) * (uint64_t)size);
  int total = 0;
  for (int r = 0; r < size; ++r) {
    counts[r] = r * count / 2;
    starts[r] = total + 1;
    total += counts[r] + 1;
  }
  int* uneven = memory(sizeof(int) * ((uint64_t)total + 1));
  int* part = values(me, size * count);
  MPI_Gatherv(part, counts[me], MPI_INT, uneven, counts, starts, MPI_INT, root, comm);
  if (me == root) {
    for (int r = 0; r < size; ++r) {
      same(__LINE__, uneven + starts[r], r, counts[r], 0);
      EXPECT(0, uneven[starts[r] - 1]);
    }
  }
  memset(part, 0, sizeof(int) * (size_t)size * (size_t)count);
  MPI_Scatterv(uneven, counts, starts, MPI_INT, part, counts[me], MPI_INT, root, comm);
  same(__LINE__, part, me, counts[me], 0);
  free(part), free(uneven), free(starts), free(counts), free(one), free(all), free(mine);
}

static void everywhere(int count) {
  int* mine = values(me, count);
  int* one = memory(sizeof(int) * (uint64_t)count);
  int* out = memory(sizeof(int) * (uint64_t)count * (uint64_t)size);
  int* all = memory(sizeof(int) * (uint64_t)count * (uint64_t)size);
  MPI_Allreduce(mine, one, count, MPI_UNSIGNED, MPI_SUM, comm);
  is_sum(__LINE__, (unsigned*)one, size, count, 0);
  MPI_Allreduce(mine, one, count, MPI_INT, MPI_MAX, comm);
  same(__LINE__, one, size - 1, count, 0);
  MPI_Scan(mine, one, count, MPI_UNSIGNED, MPI_SUM, comm);
  is_sum(__LINE__, (unsigned*)one, me + 1, count, 0);
  MPI_Exscan(mine, one, count, MPI_UNSIGNED, MPI_SUM, comm);
  if (me > 0) is_sum(__LINE__, (unsigned*)one, me, count, 0);

  MPI_Allgather(mine, count, MPI_INT, all, count, MPI_INT, comm);
  for (int r = 0; r < size; ++r) same(__LINE__, all + r * count, r, count, 0);

  for (int i = 0; i < size * count; ++i) out[i] = value(me, i);
  MPI_Alltoall(out, count, MPI_INT, all, count, MPI_INT, comm);
  for (int r = 0; r < size; ++r) same(__LINE__, all + r * count, r, count, me * count);
  MPI_Reduce_scatter_block(out, one, count, MPI_UNSIGNED, MPI_SUM, comm);
  is_sum(__LINE__, (unsigned*)one, size, count, me * count);

  /* to rank r go (me + r) % 3 thirds of count */
  int *to = memory(sizeof(int) * (uint64_t)size), *from = memory(sizeof(int) * (uint64_t)size);
  int* at = memory(sizeof(int) * (uint64_t)size);
  for (int r = 0; r < size; ++r) {
    to[r] = from[r] = count * ((me + r) % 3) / 3;
    at[r] = r * count;
  }
  memset(all, 0, sizeof(int) * (size_t)size * (size_t)count);
  MPI_Alltoallv(out, to, at, MPI_INT, all, from, at, MPI_INT, comm);
  for (int r = 0; r < size; ++r) {
    same(__LINE__, all + at[r], r, from[r], me * count);
    if (from[r] < count) EXPECT(0, all[at[r] + from[r]]);
  }
  free(at), free(from), free(to), free(all), free(out), free(one), free(mine);
}

/* Several at once, completed in any order. */
static void nonblocking(int count) {
  MPI_Request requests[6];
  int* mine = values(me, count);
  int* sum = memory(sizeof(int) * (uint64_t)count);
  int* cast = values(me, count);
  int* all = memory(sizeof(int) * (uint64_t)count * (uint64_t)size);
  int* out = memory(sizeof(int) * (uint64_t)count * (uint64_t)size);
  int* turned = memory(sizeof(int) * (uint64_t)count * (uint64_t)size);
  int* rooted_sum = memory(sizeof(int) * (uint64_t)count);
  for (int i = 0; i < size * count; ++i) out[i] = value(me, i);
  MPI_Iallreduce(mine, sum, count, MPI_UNSIGNED, MPI_SUM, comm, &requests[0]);
  MPI_Ibcast(cast, count, MPI_INT, size - 1, comm, &requests[1]);
  MPI_Iallgather(mine, count, MPI_INT, all, count, MPI_INT, comm, &requests[2]);
  MPI_Ibarrier(comm, &requests[3]);
  MPI_Ialltoall(out, count, MPI_INT, turned, count, MPI_INT, comm, &requests[4]);
  MPI_Ireduce(mine, rooted_sum, count, MPI_UNSIGNED, MPI_SUM, 0, comm, &requests[5]);
  for (int left = 6; left > 0; --left) {
    int which = -1;
    MPI_Waitany(6, requests, &which, MPI_STATUS_IGNORE);
    switch (which) {
      case 0: is_sum(__LINE__, (unsigned*)sum, size, count, 0); break;
      case 1: same(__LINE__, cast, size - 1, count, 0); break;
      case 2:
        for (int r = 0; r < size; ++r) same(__LINE__, all + r * count, r, count, 0);
        break;
      case 4:
        for (int r = 0; r < size; ++r) same(__LINE__, turned + r * count, r, count, me * count);
        break;
      case 5:
        if (me == 0) is_sum(__LINE__, (unsigned*)rooted_sum, size, count, 0);
        break;
      default: break;
    }
  }
  free(rooted_sum), free(turned), free(out), free(all), free(cast), free(sum), free(mine);
}

/* (a, b) then (c, d) is (ac, bc + d): associative, and not commutative. */
static void compose(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)type;
  const unsigned* first = in;
  unsigned* second = inout;
  for (int i = 0; i < *length; ++i) {
    const unsigned a = first[2 * i], b = first[2 * i + 1], c = second[2 * i], d = second[2 * i + 1];
    second[2 * i] = a * c;
    second[2 * i + 1] = b * c + d;
  }
}

static void own_operation(void) {
  MPI_Op op;
  MPI_Datatype pair;
  MPI_Op_create(compose, 0, &op);
  MPI_Type_contiguous(2, MPI_UNSIGNED, &pair);
  MPI_Type_commit(&pair);
  enum { pairs = 3000 };
  unsigned* mine = memory(sizeof(unsigned) * 2 * pairs);
  unsigned* all = memory(sizeof(unsigned) * 2 * pairs);
  unsigned* right = memory(sizeof(unsigned) * 2 * pairs);
  for (int r = size - 1; r >= 0; --r) {
    for (int i = 0; i < 2 * pairs; ++i) mine[i] = (unsigned)value(r, i);
    if (r == size - 1) {
      memcpy(right, mine, sizeof(unsigned) * 2 * pairs);
    } else {
      int count = pairs;
      compose(mine, right, &count, NULL);
    }
  }
  for (int i = 0; i < 2 * pairs; ++i) mine[i] = (unsigned)value(me, i);
  MPI_Allreduce(mine, all, pairs, pair, op, comm);
  EXPECT(0, memcmp(all, right, sizeof(unsigned) * 2 * pairs));
  memset(all, 0, sizeof(unsigned) * 2 * pairs);
  MPI_Reduce(mine, all, pairs, pair, op, size - 1, comm);
  if (me == size - 1) EXPECT(0, memcmp(all, right, sizeof(unsigned) * 2 * pairs));
  MPI_Op_free(&op);
  MPI_Type_free(&pair);
  free(right), free(all), free(mine);
}

/* Nobody leaves a barrier before all have come: what each sent to the next before it has arrived in order. */
static void barriers(void) {
  for (int i = 0; i < 100; ++i) MPI_Barrier(comm);
  int flag = 0;
  MPI_Request request;
  if (size < 2) return;
  MPI_Isend(NULL, 0, MPI_BYTE, (me + 1) % size, 77, comm, &request);
  MPI_Barrier(comm);
  while (!flag) MPI_Iprobe((me + size - 1) % size, 77, comm, &flag, MPI_STATUS_IGNORE);
  MPI_Recv(NULL, 0, MPI_BYTE, (me + size - 1) % size, 77, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void all_on(MPI_Comm on) {
  comm = on;
  MPI_Comm_rank(comm, &me);
  MPI_Comm_size(comm, &size);
  barriers();
  for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    for (int root = 0; root < size; ++root) rooted(lengths[i], root);
    everywhere(lengths[i]);
    if (!only_blocking) nonblocking(lengths[i]);
  }
  own_operation();
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const int rounds = argc > 1 ? atoi(argv[1]) : 2;
  only_blocking = argc > 2 && strcmp(argv[2], "blocking") == 0;
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm reverse, half, same_group;
    all_on(MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reverse);
    all_on(reverse);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    all_on(half);
    MPI_Comm_dup(half, &same_group);
    all_on(same_group);
    MPI_Comm_free(&same_group);
    MPI_Comm_free(&half);
    MPI_Comm_free(&reverse);
  }
  return end();
}
