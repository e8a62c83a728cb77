/* Exchanges of random types by MPI_Alltoallw: SEED ROUNDS [FIRST]. Every number and every gap is checked.
 *
 * The n numbers from rank a to rank b lie in one type at a, and in another at b. A round follows from SEED and its number,
 * so that FIRST replays it. Rank 0 says how many messages came, and how many numbers were wrong. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { gap = -1 };

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
static int value(int round, int from, int to, int k) { return (round * 31 + from * 7 + to * 3 + k) & 0x3fffffff; }

/* A type of n ints, or of fewer that is taken several times, and the ints that it spans. */
struct Shape {
  MPI_Datatype type;
  int count, span;
  int *places; /* of each int */
};

static struct Shape shape_of(int n) {
  struct Shape made = {MPI_INT, n, n, malloc((n + 1) * sizeof(int))};
  int const kind = below(5), step = 2 + below(6);
  int *const lengths = malloc((n + 1) * sizeof(int)), *const starts = malloc((n + 1) * sizeof(int));
  int blocks = 0, at = below(4);
  for (int k = 0; k < n; ++k) made.places[k] = k;
  if (kind == 1) {
    for (int k = 0; k < n; ++k) made.places[k] = k * step;
    MPI_Type_vector(n, 1, step, MPI_INT, &made.type);
  } else if (kind == 2) {
    for (int k = 0; k < n; ++blocks) {
      int length = 1 + below(9);
      if (length > n - k) length = n - k;
      starts[blocks] = at, lengths[blocks] = length;
      for (int i = 0; i < length; ++i) made.places[k++] = at++;
      at += 1 + below(9);
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
  if (kind >= 1 && kind <= 3) made.count = 1;
  for (int k = 0; k < n; ++k)
    if (made.places[k] >= made.span) made.span = made.places[k] + 1;
  free(lengths), free(starts);
  return made;
}

static void forget(struct Shape *shape) {
  if (shape->type != MPI_INT) MPI_Type_free(&shape->type);
  free(shape->places);
}

static long one_round(uint64_t seed, int round, MPI_Comm comm, long *messages) {
  int rank, size, wrong = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int counts_out[size], counts_in[size], places_out[size], places_in[size], numbers_in[size];
  MPI_Datatype types_out[size], types_in[size];
  struct Shape out[size], in[size];
  int bytes_out = 0, bytes_in = 0;
  begin(seed, round, 0);
  int const most = below(4) ? 40 : 40000;
  for (int i = 0; i < size * size; ++i) {
    int const n = below(5) ? below(most) : 0, from = i / size, to = i % size;
    if (to == rank) numbers_in[from] = n;
    if (from == rank) counts_out[to] = n;
  }
  begin(seed, round, 1 + rank);
  for (int i = 0; i < size; ++i) {
    out[i] = shape_of(counts_out[i]), in[i] = shape_of(numbers_in[i]);
    places_out[i] = bytes_out, places_in[i] = bytes_in;
    bytes_out += (out[i].span + below(3)) * (int)sizeof(int), bytes_in += (in[i].span + below(3)) * (int)sizeof(int);
  }
  int *const from = malloc(bytes_out + 4), *const to = malloc(bytes_in + 4);
  for (int k = 0; k < bytes_out / 4; ++k) from[k] = -2;
  for (int k = 0; k < bytes_in / 4; ++k) to[k] = gap;
  for (int i = 0; i < size; ++i) {
    for (int k = 0; k < counts_out[i]; ++k) from[places_out[i] / 4 + out[i].places[k]] = value(round, rank, i, k);
    counts_out[i] = out[i].count, types_out[i] = out[i].type;
    counts_in[i] = in[i].count, types_in[i] = in[i].type;
  }
  MPI_Alltoallw(from, counts_out, places_out, types_out, to, counts_in, places_in, types_in, comm);
  for (int i = 0; i < size; ++i) {
    *messages += numbers_in[i] > 0;
    for (int k = 0; k < numbers_in[i]; ++k) {
      int *const got = &to[places_in[i] / 4 + in[i].places[k]];
      wrong += *got != value(round, i, rank, k);
      *got = gap;
    }
  }
  for (int k = 0; k < bytes_in / 4; ++k) wrong += to[k] != gap;
  for (int i = 0; i < size; ++i) forget(&out[i]), forget(&in[i]);
  free(from), free(to);
  return wrong;
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  uint64_t const seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  int const rounds = argc > 2 ? atoi(argv[2]) : 100, first = argc > 3 ? atoi(argv[3]) : 0;
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
  long tally[2] = {0, 0}, all[2];
  for (int round = first; round < rounds; ++round) {
    if (round == first || round % 50 == 0) { /* communicators come and go */
      for (int i = 1; i < 3; ++i)
        if (comms[i] != MPI_COMM_NULL) MPI_Comm_free(&comms[i]);
      MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comms[1]);
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comms[2]);
    }
    begin(seed, round, 0);
    long const wrong = one_round(seed, round, comms[below(3)], &tally[0]);
    if (wrong > 0 && tally[1] == 0) fprintf(stderr, "rank %d: round %d is the first with wrong numbers\n", rank, round);
    tally[1] += wrong;
  }
  for (int i = 1; i < 3; ++i)
    if (comms[i] != MPI_COMM_NULL) MPI_Comm_free(&comms[i]);
  MPI_Reduce(tally, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("messages %ld wrong %ld\n", all[0], all[1]);
  MPI_Finalize();
  return rank == 0 && all[1] != 0;
}
