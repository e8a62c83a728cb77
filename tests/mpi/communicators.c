/* Communicators made of communicators in every way, used and freed: SEED ROUNDS. Every number is checked.
 *
 * All ranks draw the same plan, so that each knows the members of all communicators. What a rank sends says which
 * communicator, which call on it, and from whom to whom. Rank 0 says how many calls there were, and how many numbers
 * were wrong. With a third argument, rank 1 is killed when it has made its first communicators. */
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most = 24, ranks_max = 16, rows = 40, columns = 3, overlaps = 2, tag = 9 };

static uint64_t state;
static int rank, size;
static long wrong, calls;
static MPI_Datatype column;

static int below(int limit) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (int)((state >> 33) % (uint64_t)limit);
}

struct Group {
  MPI_Comm comm; /* null where this rank is outside */
  int id, size, calls, is_open, members[ranks_max];
};
static struct Group all[most];
static int made;

static int place_in(struct Group const* group, int who) {
  for (int i = 0; i < group->size; ++i)
    if (group->members[i] == who) return i;
  return -1;
}

static struct Group* new_group(void) {
  for (int i = 0; i < most; ++i)
    if (!all[i].is_open) {
      memset(&all[i], 0, sizeof all[i]);
      all[i].comm = MPI_COMM_NULL, all[i].is_open = 1, all[i].id = ++made;
      return &all[i];
    }
  return NULL;
}

static int room(void) {
  int free_ones = 0;
  for (int i = 0; i < most; ++i) free_ones += !all[i].is_open;
  return free_ones;
}

/* The members that `keeps` names, in their order or backwards. */
static struct Group* part_of(struct Group const* parent, unsigned keeps, int backwards) {
  struct Group* const part = new_group();
  for (int i = 0; i < parent->size; ++i) {
    int const at = backwards ? parent->size - 1 - i : i;
    if (keeps >> at & 1) part->members[part->size++] = parent->members[at];
  }
  return part;
}

static MPI_Group group_of(struct Group const* parent, struct Group const* part) {
  MPI_Group whole, some;
  int places[ranks_max];
  for (int i = 0; i < part->size; ++i) places[i] = place_in(parent, part->members[i]);
  MPI_Comm_group(parent->comm, &whole);
  MPI_Group_incl(whole, part->size, places, &some);
  MPI_Group_free(&whole);
  return some;
}

static void make(struct Group const* parent) {
  int const is_here = parent->comm != MPI_COMM_NULL, own = place_in(parent, rank), backwards = below(2);
  unsigned const everybody = (1u << parent->size) - 1, drawn = (unsigned)below(1 << 16) & everybody;
  int const way = below(6);
  if (way == 0) { /* copies. Open MPI 4.1.4 may hang in a dup before the idup of the same parent has ended */
    struct Group *const later = part_of(parent, everybody, 0), *const now = part_of(parent, everybody, 0);
    MPI_Request request;
    if (!is_here) return;
    MPI_Comm_idup(parent->comm, &later->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup(parent->comm, &now->comm);
  } else if (way == 1) { /* two colours */
    struct Group* const parts[2] = {part_of(parent, drawn, backwards), part_of(parent, everybody & ~drawn, backwards)};
    if (!is_here) return;
    int const is_drawn = drawn >> own & 1;
    MPI_Comm_split(parent->comm, is_drawn, backwards ? -own : own, &parts[!is_drawn]->comm);
  } else if (way == 2) { /* groups that overlap, with one tag, each twice */
    for (int again = 0; again < 2; ++again)
      for (int i = 0; i < overlaps; ++i) {
        struct Group* const part = part_of(parent, (drawn | 1u << i) & everybody, 0);
        if (!is_here || place_in(part, rank) < 0) continue;
        MPI_Group some = group_of(parent, part);
        MPI_Comm_create_group(parent->comm, some, tag, &part->comm);
        MPI_Group_free(&some);
      }
  } else if (way == 3) {
    struct Group* const part = part_of(parent, drawn | 1, backwards);
    if (!is_here) return;
    MPI_Group some = group_of(parent, part);
    MPI_Comm_create(parent->comm, some, &part->comm);
    MPI_Group_free(&some);
  } else if (way == 4) {
    struct Group* const grid = part_of(parent, everybody, 0);
    int const periods[1] = {1};
    if (is_here) MPI_Cart_create(parent->comm, 1, &parent->size, periods, 0, &grid->comm);
  } else { /* each has the next one for a neighbour; the first one twice */
    struct Group* const graph = part_of(parent, everybody, 0);
    if (!is_here) return;
    int const next = (own + 1) % parent->size, before = (own + parent->size - 1) % parent->size;
    int const to[2] = {next, next}, from[2] = {before, before};
    MPI_Dist_graph_create_adjacent(parent->comm, 1 + (before == 0), from, MPI_UNWEIGHTED, 1 + (own == 0), to,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph->comm);
  }
}

static double told(struct Group const* group, int from, int to, int row) {
  return ((double)(group->id * 1000 + group->calls) * ranks_max + from) * ranks_max + to + row / 64.0;
}

/* A column for each rank, of one that each rank has for each. */
static void use(struct Group* group) {
  ++group->calls;
  if (group->comm == MPI_COMM_NULL) return;
  int const own = place_in(group, rank), by_request = group->calls % 3 == 0;
  size_t const block = rows * columns;
  double *const out = calloc(block * group->size, sizeof *out), *const in = calloc(block * group->size, sizeof *in);
  int counts[ranks_max], places[ranks_max];
  MPI_Datatype types[ranks_max];
  for (int i = 0; i < group->size; ++i) {
    counts[i] = 1, places[i] = (int)(i * block * sizeof *out), types[i] = column;
    for (int row = 0; row < rows; ++row) out[i * block + row * columns] = told(group, own, i, row);
  }
  if (by_request) {
    MPI_Request request;
    MPI_Ialltoallw(out, counts, places, types, in, counts, places, types, group->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Alltoallw(out, counts, places, types, in, counts, places, types, group->comm);
  }
  for (int i = 0; i < group->size; ++i)
    for (int k = 0; k < (int)block; ++k)
      wrong += in[i * block + k] != (k % columns ? 0 : told(group, i, own, k / columns));
  free(out), free(in);
  ++calls;
}

static void drop(struct Group* group) {
  if (group->comm != MPI_COMM_NULL) MPI_Comm_free(&group->comm);
  group->is_open = 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc < 3 || size > ranks_max) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Type_vector(rows, 1, columns, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  state = strtoull(argv[1], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
  for (int i = 0; i < 8; ++i) below(2);
  int const rounds = atoi(argv[2]);
  struct Group* const world = new_group();
  world->comm = MPI_COMM_WORLD, world->size = size;
  for (int i = 0; i < size; ++i) world->members[i] = i;
  for (int round = 0; round < rounds; ++round) {
    struct Group* group = &all[below(most)];
    while (!group->is_open || group->size == 0) group = &all[below(most)];
    if (below(3) == 0 && room() >= 2 * overlaps) make(group);
    for (int i = below(8); i > 0; --i) use(group);
    if (argc > 3 && round == rounds / 2 && rank == 1) raise(SIGKILL);
    for (int i = 0; i < most && room() < most / 2; ++i) {
      struct Group* const gone = &all[1 + below(most - 1)];
      if (gone->is_open && gone != world) drop(gone);
    }
  }
  for (int i = most - 1; i >= 0; --i)
    if (&all[i] != world && all[i].is_open) drop(&all[i]);
  long const own[2] = {calls, wrong};
  long sums[2];
  MPI_Reduce(own, sums, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("calls %ld wrong %ld\n", sums[0], sums[1]);
  MPI_Type_free(&column);
  MPI_Finalize();
  return rank == 0 && sums[1] != 0;
}
