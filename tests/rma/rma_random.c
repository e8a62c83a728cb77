/* Random operations of all ranks on each other's memory, against a plain reference.
 *
 * argv: the way, the seed, the number of rounds. Each rank has, at each target, words of its own, on which it puts,
 * gets and accumulates in any order; the reference does the same one after the other, and the target replays what the
 * origin has done from the seed alone. Words that all ranks share are only added to, or xored, or changed under a lock.
 * Fetching atomics are checked for an order in which each of them saw what was done before it:
 *   - each fetching addition adds a bit of its own, so that what it saw is a set of additions; the sets must lie in
 *     each other one by one, and contain the earlier additions of the same rank;
 *   - each compare and swap writes a value of its own; those that succeed must form one chain from the first value to
 *     the last.
 */
#include <assert.h>

#include "rma_common.h"

enum {
  OWN = 512, /* words of one origin at one target */
  SHARED = 1500, /* words that all add to; longer than an atomic of the NIC */
  XORED = 64,
  BIT_WORDS = 4,
  SWAP_WORDS = 2,
  LOCKED = 8,
  RANKS_MAX = 8,
  OPS = 40,
  TRIES = 12 /* compare and swaps of a rank in a round */
};
typedef struct {
  uint64_t own[RANKS_MAX][OWN]; /* words of each origin */
  uint64_t shared[SHARED];
  uint64_t xored[XORED];
  uint64_t bits[BIT_WORDS];
  uint64_t swapped[SWAP_WORDS];
  uint64_t locked[LOCKED];
  uint64_t seen_bits[RANKS_MAX][64]; /* rank 0 has here what each fetching addition of each rank saw */
  uint64_t seen_swaps[RANKS_MAX][TRIES][2]; /* compared with, found */
} Part;

typedef struct {
  int what; /* 0 put, 1 get, 2 accumulate, 3 get-accumulate, 4 no-op, 5 fetch-and-op, 6 compare-and-swap, 7 replace */
  unsigned target, at, count;
  int op;
  uint64_t seed; /* the seed of its data */
} Act;

static Part* part;
static Part* expected;
static spl_rma_window* window;
static uint64_t seed;
static const char* way;

static void fails(const char* what, unsigned round) {
  ++wrong;
  printf("rank %u, round %u: %s\nreplay: mpiexec -n %u ./rma_random %s %llu %u\n", my_rank, round, what, ranks, way,
         (unsigned long long)seed, round + 1);
  fflush(stdout);
}

static uint64_t stream_of(unsigned round, unsigned origin, unsigned kind) {
  uint64_t state = seed * 1000003 + round * 1009 + origin * 17 + kind;
  next_random(&state);
  return state;
}

static Act random_act(uint64_t* state) {
  static const int ops[] = {PTL_SUM, PTL_BXOR, PTL_MAX, PTL_MIN, PTL_BAND, PTL_PROD};
  Act act;
  act.what = (int)(next_random(state) % 8);
  act.target = (unsigned)(next_random(state) % ranks);
  act.count = 1 + (unsigned)(next_random(state) % (next_random(state) % 4 == 0 ? OWN : 12));
  if (act.what == 5 || act.what == 6) act.count = 1;
  act.at = (unsigned)(next_random(state) % (OWN - act.count + 1));
  act.op = ops[next_random(state) % 6];
  act.seed = next_random(state);
  return act;
}

static void data_of(const Act* act, uint64_t* words) {
  uint64_t state = act->seed;
  for (unsigned i = 0; i < act->count; ++i) words[i] = next_random(&state);
}

/* Returns the value that a compare and swap compares with: half of the time the value that is there. */
static uint64_t compared(const Act* act, const uint64_t* own) { return act->seed % 2 == 0 ? own[act->at] : act->seed; }

static uint64_t combined(int op, uint64_t a, uint64_t b) {
  switch (op) {
    case PTL_SUM: return a + b;
    case PTL_BXOR: return a ^ b;
    case PTL_MAX: return a > b ? a : b;
    case PTL_MIN: return a < b ? a : b;
    case PTL_BAND: return a & b;
    default: return a * b;
  }
}

/* The plain reference. */
static void apply(const Act* act, uint64_t* own) {
  uint64_t data[OWN];
  data_of(act, data);
  uint64_t* const at = own + act->at;
  if (act->what == 6) {
    if (*at == compared(act, own)) *at = data[0];
    return;
  }
  for (unsigned i = 0; i < act->count; ++i) {
    if (act->what == 0 || act->what == 7) at[i] = data[i];
    if (act->what == 2 || act->what == 3 || act->what == 5) at[i] = combined(act->op, at[i], data[i]);
  }
}

static int overlaps(const Act* a, const Act* b) {
  return a->target == b->target && a->at < b->at + b->count && b->at < a->at + a->count;
}
static int accumulates(const Act* act) { return act->what >= 2; }

/* This rank's words at others: begins the acts in their order. One that meets an open one waits for its end, unless
 * both accumulate: those keep their order. What comes back is compared at the next flush. */
static void own_words(unsigned round) {
  static uint64_t out[OPS][OWN], back[OPS][OWN], before[OPS][OWN], compare[OPS];
  static Act acts[OPS];
  uint64_t state = stream_of(round, my_rank, 0);
  unsigned first_open = 0;
  for (unsigned i = 0; i <= OPS; ++i) {
    int flushes = i == OPS;
    if (i < OPS) {
      acts[i] = random_act(&state);
      for (unsigned j = first_open; j < i; ++j) {
        if (overlaps(&acts[i], &acts[j]) && !(accumulates(&acts[i]) && accumulates(&acts[j]))) flushes = 1;
      }
    }
    if (flushes) {
      RMA(spl_rma_flush_all(rma));
      for (; first_open < i; ++first_open) {
        const Act* const act = &acts[first_open];
        const int fetches = act->what == 1 || (act->what >= 3 && act->what <= 6);
        if (fetches && memcmp(back[first_open], before[first_open], act->count * 8) != 0)
          fails("what came back", round);
      }
    }
    if (i == OPS) break;
    const Act* const act = &acts[i];
    uint64_t* const shadow = expected->own[act->target];
    spl_rma_key* const key = spl_rma_window_key(window, act->target);
    const uint64_t offset = offsetof(Part, own) + (my_rank * OWN + act->at) * 8;
    data_of(act, out[i]);
    memcpy(before[i], shadow + act->at, act->count * 8);
    compare[i] = compared(act, shadow);
    switch (act->what) {
      case 0: RMA(spl_rma_put(key, offset, out[i], act->count * 8)); break;
      case 1: RMA(spl_rma_get(key, offset, back[i], act->count * 8)); break;
      case 2: RMA(spl_rma_accumulate(key, offset, out[i], act->count, act->op, PTL_UINT64_T)); break;
      case 3: RMA(spl_rma_get_accumulate(key, offset, out[i], back[i], act->count, act->op, PTL_UINT64_T)); break;
      case 4: RMA(spl_rma_get_accumulate(key, offset, NULL, back[i], act->count, SPL_RMA_NO_OP, PTL_UINT64_T)); break;
      case 5: RMA(spl_rma_fetch_and_op(key, offset, out[i], back[i], act->op, PTL_UINT64_T)); break;
      case 6: RMA(spl_rma_compare_and_swap(key, offset, out[i], &compare[i], back[i], PTL_UINT64_T)); break;
      default: RMA(spl_rma_accumulate(key, offset, out[i], act->count, SPL_RMA_REPLACE, PTL_UINT64_T));
    }
    apply(act, shadow);
  }
}

/* An addition or exclusive or to the shared words of rank `target`, drawn from a rank's stream. */
typedef struct {
  unsigned target, at, count, is_xor;
  uint64_t seed;
} Add;
static Add random_add(uint64_t* state) {
  Add add;
  add.target = (unsigned)(next_random(state) % ranks);
  add.is_xor = (unsigned)(next_random(state) % 2);
  const unsigned most = add.is_xor ? XORED : SHARED;
  add.count = 1 + (unsigned)(next_random(state) % (next_random(state) % 3 == 0 ? most : 8));
  add.at = (unsigned)(next_random(state) % (most - add.count + 1));
  add.seed = next_random(state);
  return add;
}

enum { ADDS = 12 };
static void add_to_shared(unsigned round) {
  static uint64_t out[ADDS][SHARED];
  uint64_t state = stream_of(round, my_rank, 1);
  for (unsigned i = 0; i < ADDS; ++i) {
    const Add add = random_add(&state);
    uint64_t data = add.seed;
    for (unsigned k = 0; k < add.count; ++k) out[i][k] = next_random(&data);
    const uint64_t offset = (add.is_xor ? offsetof(Part, xored) : offsetof(Part, shared)) + add.at * 8;
    RMA(spl_rma_accumulate(spl_rma_window_key(window, add.target), offset, out[i], add.count,
                           add.is_xor ? PTL_BXOR : PTL_SUM, PTL_UINT64_T));
  }
}

static void expect_shared(unsigned round) {
  for (unsigned origin = 0; origin < ranks; ++origin) {
    uint64_t state = stream_of(round, origin, 1);
    for (unsigned i = 0; i < ADDS; ++i) {
      const Add add = random_add(&state);
      uint64_t data = add.seed;
      for (unsigned k = 0; k < add.count; ++k) {
        const uint64_t by = next_random(&data);
        if (add.target != my_rank) continue;
        if (add.is_xor) expected->xored[add.at + k] ^= by;
        if (!add.is_xor) expected->shared[add.at + k] += by;
      }
    }
  }
}

/* Fetching additions of bits to words of rank 0, and compare and swaps. */
static void race(unsigned round) {
  const unsigned each = 64 / ranks;
  static uint64_t saw[64], swaps[TRIES][2];
  uint64_t state = stream_of(round, my_rank, 2);
  spl_rma_key* const key = spl_rma_window_key(window, 0);
  for (unsigned i = 0; i < each; ++i) {
    const uint64_t bit = (uint64_t)1 << (my_rank * each + i);
    RMA(spl_rma_fetch_and_op(key, offsetof(Part, bits) + (round % BIT_WORDS) * 8, &bit, &saw[i], PTL_SUM,
                             PTL_UINT64_T));
    RMA(spl_rma_flush(rma, 0));
    if (next_random(&state) % 4 == 0) RMA(spl_rma_progress(rma));
  }
  uint64_t last = 0;
  for (unsigned i = 0; i < TRIES; ++i) {
    const uint64_t value = ((uint64_t)my_rank << 32) + i + 1;
    swaps[i][0] = last;
    RMA(spl_rma_compare_and_swap(key, offsetof(Part, swapped) + (round % SWAP_WORDS) * 8, &value, &swaps[i][0],
                                 &swaps[i][1], PTL_UINT64_T));
    RMA(spl_rma_flush(rma, 0));
    last = swaps[i][1] == last ? value : swaps[i][1];
  }
  RMA(spl_rma_put(key, offsetof(Part, seen_bits) + my_rank * sizeof saw, saw, sizeof saw));
  RMA(spl_rma_put(key, offsetof(Part, seen_swaps) + my_rank * sizeof swaps, swaps, sizeof swaps));
  RMA(spl_rma_flush(rma, 0));
}

static void check_bits(unsigned round) {
  const unsigned each = 64 / ranks, all = each * ranks;
  uint64_t in_order[64] = {0};
  int taken[64] = {0};
  for (unsigned rank = 0; rank < ranks; ++rank) {
    for (unsigned i = 0; i < each; ++i) {
      const uint64_t saw = part->seen_bits[rank][i];
      const unsigned place = (unsigned)__builtin_popcountll(saw);
      const uint64_t earlier = (((uint64_t)1 << i) - 1) << (rank * each);
      if (place >= all || taken[place]) return fails("two additions saw equally many", round);
      if ((saw & earlier) != earlier) return fails("an addition did not see an earlier one of its rank", round);
      taken[place] = 1;
      in_order[place] = saw;
    }
  }
  for (unsigned rank = 0; rank < ranks; ++rank) {
    for (unsigned i = 0; i < each; ++i) {
      const uint64_t saw = part->seen_bits[rank][i], bit = (uint64_t)1 << (rank * each + i);
      const unsigned place = (unsigned)__builtin_popcountll(saw);
      const uint64_t next = place + 1 < all ? in_order[place + 1] : part->bits[round % BIT_WORDS];
      if (next != (saw | bit)) return fails("additions saw sets that do not lie in each other", round);
    }
  }
}

static void check_swaps(unsigned round) {
  uint64_t value = 0;
  unsigned steps = 0, successes = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    for (unsigned i = 0; i < TRIES; ++i) successes += part->seen_swaps[rank][i][0] == part->seen_swaps[rank][i][1];
  }
  while (steps < successes) {
    unsigned found = 0;
    uint64_t next = 0;
    for (unsigned rank = 0; rank < ranks; ++rank) {
      for (unsigned i = 0; i < TRIES; ++i) {
        const uint64_t* const swap = part->seen_swaps[rank][i];
        if (swap[0] != swap[1] || swap[0] != value) continue;
        ++found;
        next = ((uint64_t)rank << 32) + i + 1;
      }
    }
    if (found != 1) return fails("compare and swaps do not form a chain", round);
    value = next;
    ++steps;
  }
  if (value != part->swapped[round % SWAP_WORDS]) fails("the chain of compare and swaps ends elsewhere", round);
}

static void lock_and_change(unsigned round) {
  uint64_t state = stream_of(round, my_rank, 3);
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned rank = (unsigned)(next_random(&state) % ranks), at = (unsigned)(next_random(&state) % LOCKED);
    const int reads = next_random(&state) % 3 == 0;
    spl_rma_key* const key = spl_rma_window_key(window, rank);
    uint64_t word;
    RMA(spl_rma_lock(window, rank, reads ? SPL_RMA_SHARED : SPL_RMA_EXCLUSIVE));
    RMA(spl_rma_get(key, offsetof(Part, locked) + at * 8, &word, 8));
    RMA(spl_rma_flush(rma, rank));
    ++word;
    if (!reads) RMA(spl_rma_put(key, offsetof(Part, locked) + at * 8, &word, 8));
    RMA(spl_rma_unlock(window, rank));
  }
}

static void expect_locked(unsigned round) {
  for (unsigned origin = 0; origin < ranks; ++origin) {
    uint64_t state = stream_of(round, origin, 3);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned rank = (unsigned)(next_random(&state) % ranks), at = (unsigned)(next_random(&state) % LOCKED);
      if (next_random(&state) % 3 != 0 && rank == my_rank) ++expected->locked[at];
    }
  }
}

int main(int argc, char** argv) {
  begin();
  open_rma(argc, argv);
  way = argc > 1 ? argv[1] : "native";
  seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  const unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 4;
  assert(ranks <= RANKS_MAX);
  part = calloc(1, sizeof *part);
  expected = calloc(1, sizeof *expected); /* `own`: this rank's words by target; the rest as at this rank */
  uint64_t (*const mine)[OWN] = calloc(RANKS_MAX, sizeof *mine); /* others' work on this rank's words */
  RMA(spl_rma_window_make(rma, part, sizeof *part, SPL_RMA_ALL, 0, &window));
  for (unsigned round = 0; round < rounds; ++round) {
    if (my_rank == 0) {
      part->bits[round % BIT_WORDS] = 0;
      part->swapped[round % SWAP_WORDS] = 0;
    }
    RMA(spl_rma_barrier(rma));
    own_words(round);
    add_to_shared(round);
    race(round);
    lock_and_change(round);
    RMA(spl_rma_fence(rma));
    for (unsigned origin = 0; origin < ranks; ++origin) {
      uint64_t state = stream_of(round, origin, 0);
      for (unsigned i = 0; i < OPS; ++i) {
        const Act act = random_act(&state);
        if (act.target == my_rank) apply(&act, mine[origin]);
      }
      if (memcmp(part->own[origin], mine[origin], sizeof *mine) != 0) fails("words of an origin", round);
    }
    expect_shared(round);
    expect_locked(round);
    if (memcmp(part->shared, expected->shared, sizeof part->shared) != 0) fails("sums", round);
    if (memcmp(part->xored, expected->xored, sizeof part->xored) != 0) fails("xored words", round);
    if (memcmp(part->locked, expected->locked, sizeof part->locked) != 0) fails("words under locks", round);
    if (my_rank == 0) {
      check_bits(round);
      check_swaps(round);
    }
    RMA(spl_rma_barrier(rma));
    EXPECT(0, wrong);
    if (wrong > 0) break;
  }
  RMA(spl_rma_window_free(window));
  RMA(spl_rma_close(rma));
  return end();
}
