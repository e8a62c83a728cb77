/* Messages that are done in the memory of their target, without a turn of it. Two ranks.
 *
 *   stopped   rank 1 is stopped while rank 0 puts, gets and counts in its memory
 *   looking   both ranks look at their memory only, and answer what they see there
 *   tickets   both ranks take tickets at rank 0, one of them by the calls of rank 0 itself
 *   unlinked  rank 0 puts while rank 1 takes its entry away and brings it back: no byte comes to memory without entry
 * The second word says whose memory it is: heap, or other.
 */
#include <portals4_spin.h>
#include <signal.h>

#include "live_common.h"

enum { PT = 5, BITS = 7, WORDS = 512, TURNS = 2000 };

static int in_heap;
static volatile uint64_t* memory; /* WORDS words that the peer may use */
static ptl_handle_ct_t arrived, done;
static ptl_handle_md_t md;
static uint64_t* local;
static ptl_handle_me_t entry;
static const unsigned plain =
    PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_CT_COMM;

static void* words(void) {
  void* start = NULL;
  if (!in_heap) return some_memory(WORDS * sizeof(uint64_t));
  MUST(PtlSpinHeapAlloc(WORDS * sizeof(uint64_t), &start));
  memset(start, 0, WORDS * sizeof(uint64_t));
  return start;
}

static void open_memory(void) {
  memory = words();
  memory[1] = (uint64_t)getpid(); /* A peer reads it behind the barrier, without a turn of this rank. */
  local = words();
  arrived = counter();
  done = counter();
  ptl_pt_index_t pt;
  MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT, &pt));
  entry = append_to(PT, (void*)memory, WORDS * sizeof(uint64_t), plain, arrived, BITS, PTL_PRIORITY_LIST);
  md = bind(local, WORDS * sizeof(uint64_t), PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, PTL_EQ_NONE, done);
  barrier();
}

static uint64_t ended_before; /* acknowledgements and replies so far */

static void wait_for_end(void) { WAIT_FOR(done, ++ended_before); }
static void put_word(unsigned rank, unsigned index, uint64_t value) {
  local[index] = value;
  MUST(PtlPut(md, index * 8, 8, PTL_CT_ACK_REQ, rank_of(rank), PT, BITS, index * 8, NULL, 0));
}
static uint64_t get_word(unsigned rank, unsigned index) {
  local[index] = 0;
  MUST(PtlGet(md, index * 8, 8, rank_of(rank), PT, BITS, index * 8, NULL));
  wait_for_end();
  return local[index];
}
static uint64_t fetch_add(unsigned rank, unsigned index, uint64_t by) {
  local[WORDS - 1] = by;
  MUST(PtlFetchAtomic(md, (WORDS - 2) * 8, md, (WORDS - 1) * 8, 8, rank_of(rank), PT, BITS, index * 8, NULL, 0, PTL_SUM,
                      PTL_UINT64_T));
  wait_for_end();
  return local[WORDS - 2];
}

static uint64_t count_of(ptl_handle_ct_t ct) {
  ptl_ct_event_t count;
  MUST(PtlCTGet(ct, &count));
  return count.success;
}

/* Nothing that rank 0 has sent is under way any more when rank 1 has seen this word, and made a call. */
static void agree(void) {
  if (my_rank == 0) {
    put_word(1, 0, 1);
    wait_for_end();
  } else {
    while (memory[0] != 1) (void)count_of(arrived);
    (void)count_of(arrived);
  }
}

static void wait_until_stopped(long pid) {
  char path[64], line[256];
  snprintf(path, sizeof path, "/proc/%ld/stat", pid);
  for (;;) {
    FILE* const stat = fopen(path, "r");
    if (stat == NULL) {
      printf("rank %u: no %s\n", my_rank, path);
      exit(4);
    }
    const char* const read = fgets(line, sizeof line, stat);
    fclose(stat);
    const char* const state = read == NULL ? NULL : strrchr(line, ')');
    if (state != NULL && state[2] == 'T') return;
  }
}

static void stopped(void) {
  const long pid = my_rank == 0 ? (long)get_word(1, 1) : 0;
  agree();
  if (my_rank == 1) {
    raise(SIGSTOP);
    EXPECT(0, memory[0] == 1);
    EXPECT(21, memory[2]);
    EXPECT(in_heap ? 105 : 100, memory[3]);
    EXPECT(in_heap ? 7 : 6, count_of(arrived));
    return;
  }
  wait_until_stopped(pid);
  put_word(1, 0, 20);
  wait_for_end();
  put_word(1, 2, 21);
  wait_for_end();
  put_word(1, 3, 100);
  wait_for_end();
  EXPECT(21, get_word(1, 2));
  if (in_heap) EXPECT(100, fetch_add(1, 3, 5)); /* the kernel has no atomics */
  EXPECT(0, kill((pid_t)pid, SIGCONT));
}

static void looking(void) {
  const unsigned peer = 1 - my_rank;
  for (uint64_t turn = 1; turn <= TURNS; ++turn) {
    if (my_rank == 0) put_word(peer, 4, turn);
    while (memory[4] != turn) {
    }
    if (my_rank == 1) put_word(peer, 4, turn);
    wait_for_end();
  }
  WAIT_FOR(arrived, TURNS);
  EXPECT(TURNS, count_of(arrived));
}

static void tickets(void) {
  uint64_t last = 0, sum = 0;
  for (unsigned turn = 0; turn < TURNS; ++turn) {
    const uint64_t ticket = fetch_add(0, 8, 1);
    if (turn > 0 && ticket <= last) EXPECT(last + 1, ticket);
    last = ticket;
    sum += ticket;
  }
  put_word(0, 10 + my_rank, sum);
  wait_for_end();
  barrier();
  if (my_rank != 0) return;
  EXPECT(2 * TURNS, memory[8]);
  EXPECT((uint64_t)2 * TURNS * (2 * TURNS - 1) / 2, memory[10] + memory[11]);
}

static uint64_t ends(ptl_ct_event_t count) { return count.success + count.failure; }

/* Puts a word, and says whether it was taken. */
static int is_taken(unsigned index, uint64_t value) {
  static ptl_ct_event_t before;
  ptl_ct_event_t now;
  put_word(1, index, value);
  do MUST(PtlCTGet(done, &now));
  while (ends(now) == ends(before));
  const int taken = now.success > before.success;
  before = now;
  return taken;
}

static void unlinked(void) {
  if (my_rank == 0) {
    unsigned taken = 0, refused = 0;
    for (uint64_t turn = 1; turn < TURNS || taken == 0 || refused == 0; ++turn) is_taken(2, turn) ? ++taken : ++refused;
    while (!is_taken(3, 1)) {
    }
    return;
  }
  unsigned long long late = 0;
  while (memory[3] == 0) {
    while (PtlMEUnlink(entry) == PTL_IN_USE) {
    }
    memory[2] = 0;
    for (unsigned look = 0; look < 200; ++look) late += memory[2] != 0;
    entry = append_to(PT, (void*)memory, WORDS * sizeof(uint64_t), plain, arrived, BITS, PTL_PRIORITY_LIST);
  }
  EXPECT(0, late);
}

int main(int argc, char** argv) {
  if (argc != 3) return 3;
  in_heap = strcmp(argv[2], "heap") == 0;
  begin();
  open_memory();
  if (strcmp(argv[1], "stopped") == 0) stopped();
  if (strcmp(argv[1], "looking") == 0) looking();
  if (strcmp(argv[1], "tickets") == 0) tickets();
  if (strcmp(argv[1], "unlinked") == 0) unlinked();
  barrier();
  MUST(PtlMEUnlink(entry));
  return end();
}
