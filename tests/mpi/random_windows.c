/* Puts and gets of random types in windows of every flavour: SEED ROUNDS [FIRST [PARTS]]. Every number and every gap is
 * checked.
 *
 * Epochs are fences, locks, and starts and posts among random ranks, some of which come late. Each rank's part of a
 * window has a piece for every origin, so that accesses do not meet. The n numbers of an access lie
 * in one type at the origin, and in another at the target. A round follows from SEED and its number, so that FIRST
 * replays it. With each new window ranks change one block by turns under exclusive locks, and neighbours put and get
 * columns with no more between them than starts and posts. Rank 0 says how many accesses there were,
 * and how many numbers were wrong. Windows are of ranks whose numbers are the same modulo PARTS. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { gap = -1, most_accesses = 6, pieces_ints = 30000, most_ranks = 8 };

static uint64_t state;

static uint64_t next(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}
static int below(int limit) { return (int)((next() >> 33) % (uint64_t)limit); }
static void begin(uint64_t seed, uint64_t round, uint64_t who) {
  state = (seed * 0x9e3779b97f4a7c15u + round) * 0xbf58476d1ce4e5b9u + (who + 1) * 0x94d049bb133111ebu;
  for (int i = 0; i < 4; ++i) next();
}

/* A type of n ints, or of fewer that is taken several times, and the ints that it spans. */
struct Shape {
  MPI_Datatype type;
  int count, span;
  int* places; /* the place of each int */
};

static struct Shape shape_of(int n, int room, int plain) {
  int const kind = n == 0 || plain ? 0 : below(6);
  int step = 2 + below(5);
  struct Shape made = {MPI_INT, n, n, malloc((n + 1) * sizeof(int))};
  int *const lengths = malloc((n + 1) * sizeof(int)), *const starts = malloc((n + 1) * sizeof(int));
  int blocks = 0, at = below(4);
  while (step > 1 && n * step > room) --step;
  for (int k = 0; k < n; ++k) made.places[k] = k;
  if (kind == 1) {
    for (int k = 0; k < n; ++k) made.places[k] = k * step;
    MPI_Type_vector(n, 1, step, MPI_INT, &made.type);
  } else if (kind == 2) {
    for (int k = 0; k < n; ++blocks) {
      int length = 3 + below(9);
      if (length > n - k) length = n - k;
      starts[blocks] = at, lengths[blocks] = length;
      for (int i = 0; i < length; ++i) made.places[k++] = at++;
      at += below(3);
    }
    MPI_Type_indexed(blocks, lengths, starts, MPI_INT, &made.type);
  } else if (kind == 5) { /* long blocks */
    int const longest = n / (1 + below(3)) + 1;
    for (int k = 0; k < n; ++blocks, at += 1 + below(50)) {
      int const length = longest < n - k ? longest : n - k;
      starts[blocks] = at, lengths[blocks] = length;
      for (int i = 0; i < length; ++i) made.places[k++] = at++;
    }
    MPI_Type_indexed(blocks, lengths, starts, MPI_INT, &made.type);
  } else if (kind == 3) { /* backwards */
    for (int k = 0; k < n; ++k) starts[k] = made.places[k] = n - 1 - k;
    MPI_Type_create_indexed_block(n, 1, starts, MPI_INT, &made.type);
  } else if (kind == 4) { /* one int, again and again */
    for (int k = 0; k < n; ++k) made.places[k] = k * step;
    MPI_Type_create_resized(MPI_INT, 0, step * (MPI_Aint)sizeof(int), &made.type);
  }
  if (kind != 0) MPI_Type_commit(&made.type);
  if (kind != 0 && kind != 4) made.count = 1;
  for (int k = 0; k < n; ++k)
    if (made.places[k] >= made.span) made.span = made.places[k] + 1;
  free(lengths), free(starts);
  return made;
}

static void forget(struct Shape* shape) {
  if (shape->type != MPI_INT) MPI_Type_free(&shape->type);
  free(shape->places);
}

/* One rank's part of a window is mirrored by each origin for the piece that is its own. */
struct Exposed {
  MPI_Win win;
  MPI_Comm comm;
  int rank, size, flavour, unit;
  int *base, **mirrors; /* [target]: what lies there in this rank's piece */
  void* to_free;
};

static int* on_stack;

static struct Exposed expose(MPI_Comm comm, int flavour) {
  struct Exposed made = {.comm = comm, .flavour = flavour};
  MPI_Comm_rank(comm, &made.rank);
  MPI_Comm_size(comm, &made.size);
  static int const units[] = {1, 2, 4};
  made.unit = units[(made.rank + flavour) % 3];
  MPI_Aint const bytes = (MPI_Aint)made.size * pieces_ints * sizeof(int);
  if (flavour == 0) { /* memory of the heap */
    made.to_free = made.base = malloc(bytes);
    MPI_Win_create(made.base, bytes, made.unit, MPI_INFO_NULL, comm, &made.win);
  } else if (flavour == 1) {
    MPI_Win_allocate(bytes, made.unit, MPI_INFO_NULL, comm, &made.base, &made.win);
  } else if (flavour == 2) {
    MPI_Win_allocate_shared(bytes, made.unit, MPI_INFO_NULL, comm, &made.base, &made.win);
  } else {
    /* in memory that no peer maps: static in every other rank of the first, static or on the stack in the second */
    static int still[2][most_ranks * pieces_ints];
    made.base = made.rank % 2 ? still[flavour - 3] : flavour == 3 ? (made.to_free = malloc(bytes)) : on_stack;
    MPI_Win_create(made.base, bytes, made.unit, MPI_INFO_NULL, comm, &made.win);
  }
  made.mirrors = malloc(made.size * sizeof(int*));
  for (int i = 0; i < made.size; ++i) {
    made.mirrors[i] = malloc(pieces_ints * sizeof(int));
    for (int k = 0; k < pieces_ints; ++k) made.mirrors[i][k] = gap;
  }
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, made.rank, 0, made.win);
  for (int k = 0; k < made.size * pieces_ints; ++k) made.base[k] = gap;
  MPI_Win_unlock(made.rank, made.win);
  MPI_Barrier(comm);
  return made;
}

/* Each origin's mirror goes to the target, which compares it with its memory. */
static long compare(struct Exposed* window) {
  long wrong = 0;
  int* const theirs = malloc(pieces_ints * sizeof(int));
  MPI_Win_lock(MPI_LOCK_SHARED, window->rank, 0, window->win);
  for (int shift = 0; shift < window->size; ++shift) {
    int const to = (window->rank + shift) % window->size, from = (window->rank + window->size - shift) % window->size;
    MPI_Sendrecv(window->mirrors[to], pieces_ints, MPI_INT, to, 0, theirs, pieces_ints, MPI_INT, from, 0, window->comm,
                 MPI_STATUS_IGNORE);
    for (int k = 0; k < pieces_ints; ++k) wrong += theirs[k] != window->base[from * pieces_ints + k];
  }
  MPI_Win_unlock(window->rank, window->win);
  free(theirs);
  return wrong;
}

static long conceal(struct Exposed* window) {
  long const wrong = compare(window);
  MPI_Barrier(window->comm);
  MPI_Win_free(&window->win);
  for (int i = 0; i < window->size; ++i) free(window->mirrors[i]);
  free(window->mirrors), free(window->to_free);
  return wrong;
}

struct Access {
  int target, n, at, kind; /* kind 0: put, 1: get, 2: accumulate, 3: get and accumulate, 4: Rput, 5: Rget */
  struct Shape here, there;
  int *buffer, *expected, *operand; /* the last of an accumulate that brings back what was there */
  MPI_Request request;
};

static void make_access(struct Access* made, struct Exposed const* window, int from, int room, int target, int requests,
                        int tag) {
  made->target = target, made->operand = NULL, made->request = MPI_REQUEST_NULL;
  made->n = below(4) == 0 ? below(30) : below(6) ? below(room) : 0;
  made->kind = below(requests ? 6 : 4);
  int const plain = made->kind == 3; /* Open MPI 4.1.4 brings back wrong numbers where there are gaps */
  made->here = shape_of(made->n, 7 * made->n + 7, plain);
  do {
    made->there = shape_of(made->n, room, plain);
    if (made->there.span <= room) break;
    forget(&made->there);
  } while (1);
  made->at = from + below(room - made->there.span + 1);
  made->buffer = malloc((made->here.span + 2) * sizeof(int));
  made->expected = malloc((made->here.span + 2) * sizeof(int));
  int const reads = made->kind == 1 || made->kind == 3 || made->kind == 5;
  for (int k = 0; k < made->here.span + 2; ++k) made->buffer[k] = gap;
  if (!reads)
    for (int k = 0; k < made->n; ++k) made->buffer[1 + made->here.places[k]] = (tag * 7919 + k) & 0x3fffffff;
  memcpy(made->expected, made->buffer, (made->here.span + 2) * sizeof(int));
  if (made->kind == 3) {
    made->operand = malloc((made->n + 1) * sizeof(int));
    for (int k = 0; k < made->n; ++k) made->operand[k] = (tag * 31 + k) & 0xffff;
  }
  int* const mirror = target < 0 ? NULL : window->mirrors[target] + made->at;
  for (int k = 0; mirror != NULL && k < made->n; ++k) {
    if (reads) {
      made->expected[1 + made->here.places[k]] = mirror[made->there.places[k]];
      if (made->kind == 3) mirror[made->there.places[k]] += made->operand[k];
    } else if (made->kind == 2)
      mirror[made->there.places[k]] += made->buffer[1 + made->here.places[k]];
    else
      mirror[made->there.places[k]] = made->buffer[1 + made->here.places[k]];
  }
}

static void start_access(struct Access* one, struct Exposed const* window) {
  static int const units[] = {1, 2, 4};
  int const unit = one->target < 0 ? 1 : units[(one->target + window->flavour) % 3];
  MPI_Aint const place = one->target < 0 ? 0 : ((MPI_Aint)window->rank * pieces_ints + one->at) * 4 / unit;
  int* const mine = one->buffer + 1;
  struct Shape const *const here = &one->here, *const there = &one->there;
  switch (one->kind) {
    case 0: MPI_Put(mine, here->count, here->type, one->target, place, there->count, there->type, window->win); break;
    case 1: MPI_Get(mine, here->count, here->type, one->target, place, there->count, there->type, window->win); break;
    case 2:
      MPI_Accumulate(mine, here->count, here->type, one->target, place, there->count, there->type, MPI_SUM,
                     window->win);
      break;
    case 3:
      MPI_Get_accumulate(one->operand, one->n, MPI_INT, mine, here->count, here->type, one->target, place, there->count,
                         there->type, MPI_SUM, window->win);
      break;
    case 4:
      MPI_Rput(mine, here->count, here->type, one->target, place, there->count, there->type, window->win,
               &one->request);
      break;
    default:
      MPI_Rget(mine, here->count, here->type, one->target, place, there->count, there->type, window->win,
               &one->request);
  }
}

static long end_access(struct Access* one) {
  long wrong = 0;
  for (int k = 0; k < one->here.span + 2; ++k) wrong += one->buffer[k] != one->expected[k];
  forget(&one->here), forget(&one->there);
  free(one->buffer), free(one->expected), free(one->operand);
  return wrong;
}

/* MPI_Win_wait of Open MPI 4.1.4 does not come back from posts with MPI_MODE_NOCHECK in its windows of shared
 * memory. */
#ifdef OPEN_MPI
enum { may_leave_checks = 0 };
#else
enum { may_leave_checks = 1 };
#endif

/* MPI_Win_start of MPICH 4.0.2 may wait for ever where a rank posts for its next epoch before others have begun
 * theirs. */
#ifdef MPICH_NUMVERSION
enum { epochs_meet = MPICH_NUMVERSION < 50000000 };
#else
enum { epochs_meet = 0 };
#endif

/* Draws the accesses between start and complete: a bit for each origin and target, the same on all ranks. */
static uint64_t edges_of(uint64_t seed, int round, int repeat) {
  uint64_t const kept = state;
  begin(seed, round, 1000 + repeat);
  uint64_t const few = next(), more = next(), edges = below(2) ? few & more : few | more;
  state = kept;
  return edges;
}

/* The ranks of one end, from a random one on: origins of `rank`, or its targets. */
static int ends_of(uint64_t edges, struct Exposed const* window, int targets, int* ranks) {
  int count = 0;
  int const first = below(window->size);
  for (int i = 0; i < window->size; ++i) {
    int const other = (first + i) % window->size;
    int const origin = targets ? window->rank : other, target = targets ? other : window->rank;
    if (edges >> (origin * most_ranks + target) & 1) ranks[count++] = other;
  }
  return count;
}

static MPI_Group group_of(struct Exposed const* window, int count, int const* ranks) {
  MPI_Group all, some;
  MPI_Comm_group(window->comm, &all);
  MPI_Group_incl(all, count, ranks, &some);
  MPI_Group_free(&all);
  return some;
}

static void dawdle(void) {
  volatile int work = below(4) ? 0 : below(300000);
  while (work > 0) --work;
}

static void await_origins(MPI_Win win) {
  int has_ended = 0;
  if (below(2)) {
    MPI_Win_wait(win);
  } else {
    while (!has_ended) MPI_Win_test(win, &has_ended);
  }
}

/* Runs a round. `sync` says how its epochs begin and end: 0-2 fences, 3 locks, 4 a lock of all, 5-7 start and post. */
static long one_round(uint64_t seed, int round, struct Exposed* window, long* accesses) {
  struct Access all[most_accesses];
  begin(seed, round, 0);
  int const sync = below(8), repeats = 1 + below(3), asserts = below(3);
  long wrong = 0;
  MPI_Win const win = window->win;
  begin(seed, round, 1 + window->rank);
  if (sync <= 2) MPI_Win_fence(asserts ? MPI_MODE_NOPRECEDE : 0, win);
  if (sync == 4) MPI_Win_lock_all(asserts == 0 ? MPI_MODE_NOCHECK : 0, win);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    int const locked = below(window->size);
    int targets[most_ranks], origins[most_ranks], targets_count = 0, origins_count = 0;
    if (sync == 3) MPI_Win_lock(below(2) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, locked, 0, win);
    if (sync >= 5) {
      uint64_t const edges = edges_of(seed, round, repeat);
      int const check = asserts == 0 && may_leave_checks ? MPI_MODE_NOCHECK : 0;
      origins_count = ends_of(edges, window, 0, origins), targets_count = ends_of(edges, window, 1, targets);
      MPI_Group from = group_of(window, origins_count, origins), to = group_of(window, targets_count, targets);
      dawdle();
      if (origins_count > 0) MPI_Win_post(from, check | (below(2) ? MPI_MODE_NOSTORE : 0), win);
      if (check) MPI_Barrier(window->comm);
      if (targets_count > 0) MPI_Win_start(to, check, win);
      MPI_Group_free(&from), MPI_Group_free(&to);
    }
    int const count = sync >= 5 && targets_count == 0 ? 0 : below(most_accesses + 1);
    for (int i = 0; i < count; ++i) {
      int const anyone = below(9) ? below(window->size) : MPI_PROC_NULL;
      int const target = sync == 3 ? locked : sync >= 5 ? targets[below(targets_count)] : anyone;
      int const room = pieces_ints / most_accesses;
      make_access(&all[i], window, i * room, room, target, sync == 3 || sync == 4, round * 100 + repeat * 10 + i);
      start_access(&all[i], window);
      if (below(2)) MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < count; ++i) MPI_Wait(&all[i].request, MPI_STATUS_IGNORE);
    if (sync <= 2) MPI_Win_fence(repeat == repeats - 1 && asserts == 2 ? MPI_MODE_NOSUCCEED : 0, win);
    if (sync == 3) MPI_Win_unlock(locked, win);
    if (sync == 4) MPI_Win_flush_all(win);
    if (targets_count > 0) MPI_Win_complete(win);
    if (origins_count > 0) await_origins(win);
    if (sync >= 5 && epochs_meet) MPI_Barrier(window->comm);
    for (int i = 0; i < count; ++i) wrong += end_access(&all[i]);
    *accesses += count;
  }
  if (sync == 4) MPI_Win_unlock_all(win);
  MPI_Barrier(window->comm);
  return wrong;
}

/* Under an exclusive lock the numbers of a block are the same, and one rank adds one to each. */
static long take_turns(struct Exposed* window, int turns) {
  enum { numbers = 3000, step = 5 };
  long wrong = 0;
  int block[numbers];
  MPI_Datatype spread;
  MPI_Type_vector(numbers, 1, step, MPI_INT, &spread);
  MPI_Type_commit(&spread);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window->rank, 0, window->win);
  for (int k = 0; k < numbers * step; ++k) window->base[k] = 0;
  MPI_Win_unlock(window->rank, window->win);
  MPI_Barrier(window->comm);
  for (int turn = 0; turn < turns; ++turn) {
    int const target = turn % window->size;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window->win);
    MPI_Get(block, numbers, MPI_INT, target, 0, 1, spread, window->win);
    MPI_Win_flush(target, window->win);
    for (int k = 0; k < numbers; ++k) wrong += block[k] != block[0];
    for (int k = 0; k < numbers; ++k) ++block[k];
    MPI_Put(block, numbers, MPI_INT, target, 0, 1, spread, window->win);
    MPI_Win_unlock(target, window->win);
  }
  MPI_Barrier(window->comm);
  MPI_Win_lock(MPI_LOCK_SHARED, window->rank, 0, window->win);
  int expected = 0;
  for (int turn = 0; turn < turns; ++turn) expected += turn % window->size == window->rank ? window->size : 0;
  for (int k = 0; k < numbers * step; ++k) wrong += window->base[k] != (k % step == 0 ? expected : 0);
  MPI_Win_unlock(window->rank, window->win);
  MPI_Barrier(window->comm);
  MPI_Type_free(&spread);
  return wrong;
}

/* Each rank puts a column into those of its two neighbours, or gets theirs. What a put has brought is looked at as soon
 * as MPI_Win_wait has returned, and what others may get next is written just before MPI_Win_post. */
static long meet_neighbours(struct Exposed* window, int turns) {
  enum { numbers = 2000, step = 5 };
  long wrong = 0;
  int mine[numbers], theirs[2][numbers];
  int const ends[2] = {(window->rank + 1) % window->size, (window->rank + window->size - 1) % window->size};
  static int const units[] = {1, 2, 4};
  MPI_Group const both = group_of(window, ends[0] == ends[1] ? 1 : 2, ends);
  MPI_Datatype column;
  MPI_Type_vector(numbers, 1, step, MPI_INT, &column);
  MPI_Type_commit(&column);
  for (int turn = 1; turn <= turns; ++turn) {
    int const puts = below(2) == 0;
    for (int k = 0; k < numbers; ++k) mine[k] = window->base[k * step + 2] = turn * 100 + window->rank;
    MPI_Win_post(both, 0, window->win);
    MPI_Win_start(both, 0, window->win);
    for (int i = 0; i < 2; ++i) {
      MPI_Aint const place = (puts ? i : 2) * (MPI_Aint)sizeof(int) / units[(ends[i] + window->flavour) % 3];
      if (puts)
        MPI_Put(mine, numbers, MPI_INT, ends[i], place, 1, column, window->win);
      else
        MPI_Get(theirs[i], numbers, MPI_INT, ends[i], place, 1, column, window->win);
    }
    MPI_Win_complete(window->win);
    for (int i = 0; !puts && i < 2; ++i)
      for (int k = 0; k < numbers; ++k) wrong += theirs[i][k] != turn * 100 + ends[i];
    MPI_Win_wait(window->win);
    for (int i = 0; puts && i < 2; ++i) /* the rank before this one has put into its next one's first column */
      for (int k = 0; k < numbers; ++k) wrong += window->base[k * step + i] != turn * 100 + ends[1 - i];
  }
  MPI_Type_free(&column);
  MPI_Group both_again = both;
  MPI_Group_free(&both_again);
  return wrong;
}

/* The mirrors know nothing of what came before. */
static void renew(struct Exposed* window) {
  MPI_Barrier(window->comm);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window->rank, 0, window->win);
  for (int k = 0; k < window->size * pieces_ints; ++k) window->base[k] = gap;
  MPI_Win_unlock(window->rank, window->win);
  for (int i = 0; i < window->size; ++i)
    for (int k = 0; k < pieces_ints; ++k) window->mirrors[i][k] = gap;
  MPI_Barrier(window->comm);
}

/* Open MPI 4.1.4 names the files of a window by a number that another window of this machine has, too, if no rank has
 * both. Ranks with other communicators get other numbers. */
enum { spare_comms = 32, parts_max = 4 };
static void take_numbers(int parts, MPI_Comm* spare) {
  for (int i = 0; i < parts * spare_comms; ++i) MPI_Comm_dup(MPI_COMM_SELF, &spare[i]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  uint64_t const seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  int rounds = argc > 2 ? atoi(argv[2]) : 100, rank, size;
  int const first = argc > 3 ? atoi(argv[3]) : 0, parts = argc > 4 ? atoi(argv[4]) : 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size > most_ranks) {
    fprintf(stderr, "%d ranks are too many: %d at most\n", size, most_ranks);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Comm everyone = MPI_COMM_WORLD, backwards;
  if (parts > parts_max) MPI_Abort(MPI_COMM_WORLD, 2);
  if (parts > 1) MPI_Comm_split(MPI_COMM_WORLD, rank % parts, rank, &everyone);
  MPI_Comm spare[parts_max * spare_comms];
  take_numbers(rank % parts, spare);
  MPI_Comm_split(everyone, 0, size - rank, &backwards);
  MPI_Comm_size(everyone, &size);
  if (size == 1) rounds = first; /* Open MPI 4.1.4 makes no window of one rank */
  long tally[2] = {0, 0}, all[2];
  enum { flavours = 5 };
  int stack[most_ranks * pieces_ints];
  on_stack = stack;
  struct Exposed windows[flavours];
  for (int round = first; round < rounds; ++round) {
    int const renews = round == first || round % 40 == 0;
    long wrong = 0;
    for (int i = 0; renews && i < flavours; ++i) {
      if (round != first) wrong += conceal(&windows[i]);
      windows[i] = expose((round / 40 + i) % 2 ? backwards : everyone, i);
      wrong += take_turns(&windows[i], 12);
      begin(seed, round, 2000 + i); /* all ranks alike */
      wrong += meet_neighbours(&windows[i], 8);
      renew(&windows[i]);
    }
    begin(seed, round, 0);
    wrong += one_round(seed, round, &windows[below(flavours)], &tally[0]);
    if (wrong > 0 && tally[1] == 0) fprintf(stderr, "rank %d: round %d is the first with wrong numbers\n", rank, round);
    tally[1] += wrong;
  }
  for (int i = 0; i < flavours && first < rounds; ++i) tally[1] += conceal(&windows[i]);
  MPI_Comm_free(&backwards);
  if (parts > 1) MPI_Comm_free(&everyone);
  for (int i = 0; i < rank % parts * spare_comms; ++i) MPI_Comm_free(&spare[i]);
  MPI_Reduce(tally, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("accesses %ld wrong %ld\n", all[0], all[1]);
  MPI_Finalize();
  return rank == 0 && all[1] != 0;
}
